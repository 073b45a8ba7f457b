"""Listening tests: do ten listeners and 60 pairs find the better of two models? A simulation.

There are thirty queries with one result per model. The true similarity of a result, on the scale of fine scores, varies
by query (standard deviation 12) and by result (12). It also varies by model: this is the difference to detect.
Listeners add noise (20), differ in severity (10), and use 0 to 100 in steps of 5. These are assumptions, not measured
on people. The app's code arranges, freezes and evaluates the tests.

"the better one" counts draws with a significant verdict for the better model, "the other one" the opposite. "by grade"
is the same rank test with every listener's grades of a query as a separate block, as if they were independent. Its
findings at difference zero show why blocks are queries.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.support.columns import SHARE_3, Column, Table, drop_zeros, list_columns
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main
from musicsim._arrays import Float64Array
from musicsim.evaluation import compare_ranks
from musicsim.extensions.listening_tests.frozen import FrozenSong, ListeningTest
from musicsim.extensions.listening_tests.pooling import ListeningTestRequest, PooledQuery, arrange
from musicsim.extensions.listening_tests.results import TestResults, results
from musicsim.extensions.listening_tests.store import CATEGORIES, Grade, InvitedListener

QUERIES, LISTENERS = 30, 10
BY_QUERY, BY_RESULT, NOISE, SEVERITY = 12.0, 12.0, 20.0, 10.0
MIDDLE, STEP = 50.0, 5
DIFFERENCES = (0.0, 3.0, 6.0, 10.0, 15.0)
DRAWS = 200  # of the short form
WORSE, BETTER = "A", "B"


def made_test(rng: np.random.Generator) -> ListeningTest:
    """Return a test of synthetic songs, with four attention checks."""

    def song(number: int) -> FrozenSong:
        return FrozenSong(content_hash=f"{number:x}", sound_hash="", title="", artist="", start_s=0.0)

    pools = [
        PooledQuery(song(3 * query), [(song(3 * query + 1), (0,)), (song(3 * query + 2), (1,))])
        for query in range(QUERIES)
    ]
    return arrange(pools, ListeningTestRequest(models=(WORSE, BETTER), queries=QUERIES), rng)


def graded(
    test: ListeningTest, difference: float, rng: np.random.Generator
) -> tuple[list[InvitedListener], dict[int, Sequence[Grade]]]:
    """Return ten listeners and their grades; the second model's results are more similar by a difference."""
    of_query = dict(zip(range(len(test.songs)), BY_QUERY * rng.normal(size=len(test.songs)), strict=True))
    true = [
        95.0
        if pair.is_check
        else MIDDLE + of_query[pair.query] + BY_RESULT * rng.normal() + difference * (pair.models == (1,))
        for pair in test.pairs
    ]
    listeners, grades = [], {}
    for number in range(LISTENERS):
        severity = SEVERITY * rng.normal()
        said = []
        for place, pair in enumerate(test.pairs):
            heard = true[place] + (0.0 if pair.is_check else severity + NOISE * rng.normal())
            fine = int(np.clip(STEP * round(heard / STEP), 0, 100))
            said.append(Grade(place, min(len(CATEGORIES) - 1, fine // 34), fine, 0.0))
        listeners.append(InvitedListener(number, 0, number, f"listener {number}", "", 0.0))
        grades[number] = said
    return listeners, grades


def blocks_of_listeners(test: ListeningTest, grades: dict[int, Sequence[Grade]]) -> Float64Array:
    """Return fine scores of both models for each query and listener, (n_queries * n_listeners, 2)."""
    queries = sorted({pair.query for pair in test.pairs})
    found = np.empty((LISTENERS, len(queries), 2))
    for number, said in grades.items():
        for grade in said:
            pair = test.pairs[grade.pair]
            if not pair.is_check:
                found[number, queries.index(pair.query), pair.models[0]] = grade.fine
    return found.reshape(-1, 2)


def verdict(found: TestResults) -> str:
    """Return the model that is significantly better, or an empty string."""
    (pair,) = found.pairs
    return pair.better if pair.is_sure else ""


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every difference."""
    from scipy.stats import binomtest

    n_draws = (5 if settings.full else 1) * DRAWS
    rows: list[Row] = []
    claims: list[Claim] = []
    for difference in DIFFERENCES:
        rng = np.random.default_rng([settings.seed, round(10 * difference)])
        test = made_test(rng)
        said, covered, by_grade, alphas = [], 0, 0, []
        for _ in range(n_draws):
            listeners, grades = graded(test, difference, rng)
            found = results(test, listeners, grades)
            said.append(verdict(found))
            (pair,) = found.pairs
            signed = (pair.low, pair.high) if pair.better == BETTER else (-pair.high, -pair.low)
            covered += signed[0] <= difference <= signed[1]
            by_grade += compare_ranks(blocks_of_listeners(test, grades)).p_value < 0.05
            alphas.append(found.by_fine.alpha)
        right, wrong = said.count(BETTER), said.count(WORSE)
        interval = binomtest(right, n_draws).proportion_ci(method="wilson")
        rows.append({
            "true difference": difference, "draws": n_draws, "the better one": right / n_draws,
            "95 % interval": f"{interval.low:.2f} to {interval.high:.2f}", "the other one": wrong / n_draws,
            "interval holds it": covered / n_draws, "by grade": by_grade / n_draws, "alpha": float(np.mean(alphas)),
        })  # fmt: skip
        if difference:
            claims.append(
                at_most(f"difference {difference:g}: share of draws with the wrong verdict", wrong / n_draws, 0.025)
            )
        else:
            low = binomtest(right + wrong, n_draws).proportion_ci(method="wilson").low
            claims.append(at_most("no difference: false verdicts, low end of 95 %", low, 0.05))
            claims.append(at_least("no difference: false verdicts with a block a grade", by_grade / n_draws, 0.05))
        progress(f"difference {difference:g}")
    strongest = rows[-1]
    claims.append(at_least(f"difference {DIFFERENCES[-1]:g}: share found", strongest["the better one"], 0.9))  # type: ignore[arg-type]
    settings.facts.update(
        queries=QUERIES, pairs=2 * QUERIES, listeners=LISTENERS, noise=NOISE, severity=SEVERITY, by_query=BY_QUERY,
        by_result=BY_RESULT,
    )  # fmt: skip
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "listening_test": list_columns(
        Column("true difference", "true difference", "{:g}"),
        Column("better model found", "the better one", SHARE_3),
        Column("95% interval", "95 % interval", drop_zeros),
        Column("worse model found", "the other one", SHARE_3),
        Column("interval contains the difference", "interval holds it", SHARE_3),
        Column("either model found if each grade is a block", "by grade", SHARE_3),
    )
}


if __name__ == "__main__":
    main(
        "listening_test", __doc__.splitlines()[0], run,
        short="200 of 1,000 draws per difference. The full form is worth running, because the goal for a "
        "difference of 15 is inside the interval",
    )  # fmt: skip
