"""Bands of the taste card: how often does the 95% band of a share contain the true share?

- simulated: listeners with known shares of timbre, rhythm and harmony answer questions about 300 songs. There are three
  sets of shares, one of them without harmony. For each set, psi sums to 5 for "odd" and for "like" questions, and to 2
  and 0.7 for "odd" questions: twelve listeners. In bliss's survey, it sums to 0.5. Coverage is the mean over listeners
  and parts, and "lowest" is that of one part of one listener. The three methods use the same answers. *Profile
  likelihood* is the method of the card. *Laplace* is the estimate without bounds and 1.96 standard errors, by the delta
  method. *Bayesian bootstrap* is the 95% interval of 256 tastes from `musicsim.explorer.survey.tastes`, with one
  dimension per part. "Undecided" are the coverage and width for the listeners whose psi sums to 0.7.
- sets of real music that ``--music`` names: the same listeners, but their questions are about these songs, with the
  vectors that the app stores for timbre, rhythm and harmony.
- held-out: how often Wilson's interval for held-out answers contains the true accuracy of the estimate from all
  answers. This is the mean probability of the predicted option over 2,000 further questions.
- narrowed: after 30 random questions, 70% of the questions are chosen to narrow the widest band.
- surveys: two random disjoint sets of answers give two estimates. The row states how often 0 is in the 95% interval of
  their difference, which combines both bands (MOVER, Zou and Donner 2008). *By question* and *by artist* put repeated
  questions, and comparisons with the same first artist, in the same set. Answers come from many people, who are treated
  as one. Comparisons of aset400 with the same first artist are not independent: one choice from a list of artists
  implied several. The parts of bliss's survey are tempo, loudness, chroma and the remaining descriptors. The parts of
  aset400 are thirds of the genre labels, by alphabet, because the data contains no sound.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.support.columns import SHARE_3, KeptRows, Lines, Table, format_share
from benchmarks.support.report import Claim, Progress, Row, Settings, Skipped, at_least, load_found, main
from experiments.support.game_music import CACHE
from experiments.support.music_sets import music_sets
from experiments.support.surveys import load_artists, load_survey
from experiments.support.uci import one_core_each
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.survey.tastes import answer_costs, pairs_apart, sample_tastes
from musicsim.explorer.trials.rates import measure_rate
from musicsim.extensions.taste_card.parts import Parts
from musicsim.extensions.taste_card.shares import Band, Choices, Fit
from musicsim.extensions.taste_card.taste import predict_held_out, reduce_variance
from musicsim.library import Library

N_ANSWERS = (30, 100, 300)
SHARES = ((0.6, 0.25, 0.15), (0.75, 0.25, 0.0), (0.3, 0.6, 0.1))
MANNERS = (("odd", 5.0), ("like", 5.0), ("odd", 2.0), ("odd", 0.7))
N_LISTENERS = len(SHARES) * len(MANNERS)
UNDECIDED = slice(len(MANNERS) - 1, None, len(MANNERS))  # the listeners with the last manner
N_REPEATS = {False: 60, True: 300}
N_REPEATS_REAL = {False: 20, True: 100}
N_NARROWED = {False: 25, True: 50}
N_SPLITS = {False: 100, True: 300}
N_SONGS, N_DIMENSIONS = 300, (60, 20, 15)
N_QUESTIONS = 2_000
N_CANDIDATES, REFIT_EVERY = 100, 10
SOFTNESS = 0.3  # of the tastes, relative to the mean distance
METHODS = ("profile likelihood", "Laplace", "Bayesian bootstrap")

Blocks = tuple[Float64Array, ...]
"""Vectors of songs in each part, (n_songs, n_dimensions of the part)."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A simulated listener, and the songs of their library."""

    shares: Float64Array
    total: float
    form: str
    blocks: Blocks

    @classmethod
    def draw(cls, number: int, rng: np.random.Generator, blocks: Blocks = ()) -> "Listener":
        """Return one of the listeners; without `blocks`, draw songs: the k-th dimension has the deviation k^-0.6."""
        shares, (form, total) = SHARES[number // len(MANNERS)], MANNERS[number % len(MANNERS)]
        drawn = tuple(rng.normal(size=(N_SONGS, d)) * np.arange(1.0, d + 1) ** -0.6 for d in N_DIMENSIONS)
        return cls(np.array(shares), total, form, blocks or drawn)

    def ask(self, n: int, rng: np.random.Generator) -> Float64Array:
        """Return the costs of random questions, (n, n_options, n_parts)."""
        questions = rng.integers(len(self.blocks[0]), size=(2 * n + 20, 3))
        ordered = np.sort(questions, axis=1)
        return part_costs(self.blocks, questions[(np.diff(ordered) > 0).all(axis=1)][:n], self.form)

    def answer(self, options: Float64Array, rng: np.random.Generator) -> list[Float64Array]:
        """Return the answers as differences of costs, for :class:`Choices`."""
        utilities = -self.total * options @ self.shares
        gumbel = rng.gumbel(size=utilities.shape)  # the largest sum follows the softmax of the utilities
        return chosen_differences(options, (utilities + gumbel).argmax(axis=1))

    def accuracy_of(self, psi: Float64Array, options: Float64Array) -> float:
        """Return the probability that the listener chooses the option with the lowest cost, mean over questions."""
        utilities = -self.total * options @ self.shares
        p = np.exp(utilities - utilities.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return float(p[np.arange(len(p)), (options @ psi).argmin(axis=1)].mean())


def part_costs(blocks: Blocks, questions: Int64Array, form: str) -> Float64Array:
    """Return the costs of the options in each part, whose mean squared distance is 1."""
    apart = [pairs_apart(X, questions).sum(axis=2) / (2 * X.var(axis=0, ddof=1).sum()) for X in blocks]
    return answer_costs(np.stack(apart, axis=2), questions.shape[1], form)


def chosen_differences(options: Float64Array, chosen: Int64Array) -> list[Float64Array]:
    """Return the costs of the other options minus that of the chosen one, per question."""
    return [np.delete(one, at, axis=0) - one[at] for one, at in zip(options, chosen.tolist(), strict=True)]


# --- methods ------------------------------------------------------------------------------------------


def laplace(fit: Fit, choices: Choices) -> list[Band]:
    """Return the estimate of psi without bounds, with 1.96 standard errors of the shares."""
    _, psi = fit.free
    inverse = np.linalg.inv(choices.loss(psi)[2])
    shares = psi / psi.sum()
    slopes = (np.eye(len(psi)) - shares[:, None]) / psi.sum()
    half = 1.96 * np.sqrt(np.einsum("ig,gh,ih->i", slopes, inverse, slopes))
    return [Band(s, max(0.0, s - h), min(1.0, s + h)) for s, h in zip(shares.tolist(), half.tolist(), strict=True)]


def bootstrap(differences: list[Float64Array], rng: np.random.Generator) -> list[Band]:
    """Return the 95% intervals of 256 tastes, with one dimension per part."""
    gaps = np.concatenate(differences) / (SOFTNESS * differences[0].shape[1])
    answer = np.repeat(np.arange(len(differences)), [len(one) for one in differences])
    tastes = np.concatenate([sample_tastes(gaps, answer, rng) for _ in range(8)], axis=1)
    shares = tastes / np.maximum(tastes.sum(axis=0), np.finfo(float).tiny)
    low, high = np.quantile(shares, (0.025, 0.975), axis=1)
    return [Band(*one) for one in zip(shares.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)]


def contain(bands: list[Band], shares: Float64Array) -> list[bool]:
    """Return whether each band contains the true share."""
    return [band.low - 1e-9 <= share <= band.high + 1e-9 for band, share in zip(bands, shares.tolist(), strict=True)]


# --- simulated listeners ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """Results for one listener: coverage and widths by method, (n_methods, n_parts), and of the interval held out."""

    covers: BoolArray
    widths: Float64Array
    covers_accuracy: bool


def try_listener(number: int, n: int, seed: int, repeat: int, blocks: Blocks = ()) -> Trial:
    """Simulate a listener's answers to random questions, and compute all bands."""
    rng = np.random.default_rng([seed, number, n, repeat])
    listener = Listener.draw(number, rng, blocks)
    given = listener.answer(listener.ask(n, rng), rng)
    choices = Choices(given)
    fit = Fit(choices)
    bands = [fit.bands, laplace(fit, choices), bootstrap(given, rng)]
    right = predict_held_out(given, np.arange(n), repeat)
    rate = measure_rate((is_right, 0.0) for is_right in right.tolist())
    accuracy = listener.accuracy_of(fit.psi, listener.ask(N_QUESTIONS, rng))
    return Trial(
        np.array([contain(one, listener.shares) for one in bands]),
        np.array([[band.high - band.low for band in one] for one in bands]),
        rate.low <= accuracy <= rate.high,
    )


def try_narrowing(number: int, n: int, seed: int, repeat: int) -> tuple[list[bool], float, float]:
    """Return coverage, and the widest band after chosen questions and after as many random ones."""
    rng = np.random.default_rng([seed, number, n, repeat, 1])
    listener = Listener.draw(number, rng)
    given = listener.answer(listener.ask(N_ANSWERS[0], rng), rng)
    fit, psi, hessian, widest = Fit(Choices(given)), np.ones(3), np.eye(3), 0
    while len(given) < n:
        if len(given) % REFIT_EVERY == 0:
            fit = Fit(Choices(given))
            psi = fit.psi if fit.psi.sum() > 0 else np.ones(3)
            hessian = Choices(given).loss(psi)[2]
            widest = int(np.argmax([band.high - band.low for band in fit.bands]))
        options = listener.ask(N_CANDIDATES, rng)
        values = reduce_variance(options, psi, hessian, widest)
        best = int(np.argmax(values)) if rng.random() < 0.7 else 0
        given += listener.answer(options[[best]], rng)
    chosen = Fit(Choices(given)).bands
    by_chance = Fit(Choices(listener.answer(listener.ask(n, rng), rng))).bands
    widths = (max(band.high - band.low for band in bands) for bands in (chosen, by_chance))
    return (contain(chosen, listener.shares), *widths)


def real_blocks(library: Library) -> Blocks:
    """Return the songs that have all parts of the taste card."""
    snapshot = take_snapshot(library)
    factors, names = Factors(snapshot), Parts(snapshot).names
    blocks = [factors.vectors(name, np.arange(factors.sound.n_indexed)).astype(np.float64) for name in names]
    is_known = np.isfinite(np.concatenate(blocks, axis=1)).all(axis=1)
    return tuple(block[is_known] for block in blocks)


def simulated_rows(n: int, trials: list[list[Trial]]) -> Iterator[Row]:
    """Yield one row per method; `trials` are by listener."""
    covers = np.array([[trial.covers for trial in one] for one in trials])  # (listeners, repeats, methods, parts)
    widths = np.array([[trial.widths for trial in one] for one in trials])
    for at, method in enumerate(METHODS):
        by_repeat = covers[:, :, at].mean(axis=2)
        yield {
            "simulated: answers": n,
            "method": method,
            "coverage": float(by_repeat.mean()),
            "standard error": float(by_repeat.std() / np.sqrt(by_repeat.size)),
            "lowest": float(covers[:, :, at].mean(axis=1).min()),
            "mean width": float(widths[:, :, at].mean()),
            "coverage, undecided": float(covers[UNDECIDED, :, at].mean()),
            "mean width, undecided": float(widths[UNDECIDED, :, at].mean()),
        }
    held = np.array([[trial.covers_accuracy for trial in one] for one in trials])
    yield {
        "held-out: answers": n,
        "coverage": float(held.mean()),
        "standard error": float(held.std() / np.sqrt(held.size)),
        "lowest": float(held.mean(axis=1).min()),
        "coverage, undecided": float(held[UNDECIDED].mean()),
    }


# --- surveys ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a survey, and what must stay together."""

    name: str
    differences: list[Float64Array]
    groups: Int64Array
    is_independent: bool = True  # False: the answers of a group come from the same people, who chose from one list


def load_answers() -> list[Answered]:
    """Load both surveys."""
    survey = load_survey()
    X = survey.X / np.maximum(survey.X.std(axis=0), np.finfo(float).tiny)
    blocks = (X[:, 0:1], X[:, 8:10], X[:, 10:20], X[:, 1:8])
    odd = chosen_differences(part_costs(blocks, survey.songs, "odd"), survey.odd)
    compared, labels = load_artists()
    thirds = tuple(np.asarray(part) for part in np.array_split(labels, 3, axis=1))
    asked = compared[:, [0, 1, 3]]
    like = chosen_differences(part_costs(thirds, asked, "like"), np.zeros(len(asked), np.int64))
    return [
        Answered("bliss, by question", odd, survey.groups),
        Answered("aset400, by comparison", like, np.arange(len(like))),
        Answered("aset400, by artist", like, compared[:, 0], is_independent=False),
    ]


def agrees(one: Band, other: Band) -> bool:
    """Return whether 0 is in the 95% interval of the difference of two independent estimates (MOVER)."""
    higher, lower = (one, other) if one.share >= other.share else (other, one)
    return higher.share - lower.share <= np.hypot(higher.share - higher.low, lower.high - lower.share)


def split(answered: Answered, n: int, seed: int, repeat: int) -> list[bool]:
    """Return for each part whether two random sets of about n answers agree."""
    rng = np.random.default_rng([seed, n, repeat])
    order = rng.permutation(answered.groups.max() + 1)[answered.groups]  # random ranks of the groups
    rows = np.argsort(order, kind="stable")
    ranks = order[rows]
    first = rows[: int(np.searchsorted(ranks, ranks[n - 1], side="right"))]
    rest = rows[len(first) :]
    second = rest[: int(np.searchsorted(order[rest], order[rest][min(n, len(rest)) - 1], side="right"))]
    bands = [Fit(Choices([answered.differences[row] for row in some])).bands for some in (first, second)]
    return [agrees(a, b) for a, b in zip(*bands, strict=True)]


def survey_row(name: str, n: int, agreed: BoolArray) -> Row:
    """Return how often two sets agree; `agreed` is (n_splits, n_parts)."""
    return {
        "survey": name,
        "answers per set": n,
        "agreement": float(agreed.mean()),
        "standard error": float(agreed.mean(axis=1).std() / np.sqrt(len(agreed))),
        "lowest of a part": float(agreed.mean(axis=0).min()),
    }


# --- runs ---------------------------------------------------------------------------------------------


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    seed, full = settings.seed, settings.full
    repeats, narrowed, n_splits = N_REPEATS[full], N_NARROWED[full], N_SPLITS[full]
    settings.facts.update(
        {"listeners": N_LISTENERS, "repeats": repeats, "repeats, narrowed": narrowed, "splits": n_splits}
    )
    rows: list[Row] = []
    claims: list[Claim] = []

    def claim(words: str, coverage: float) -> None:
        claims.append(Claim(words, coverage, ".93 to .97", 0.93 <= coverage <= 0.97))

    with one_core_each() as pool:

        def simulate(name: str, n: int, n_repeats: int, blocks: Blocks = ()) -> None:
            tasks = [
                [pool.submit(try_listener, who, n, seed, r, blocks) for r in range(n_repeats)]
                for who in range(N_LISTENERS)
            ]
            found = list(simulated_rows(n, [[task.result() for task in one] for one in tasks]))
            rows.extend({"set": name} | row for row in found)
            claim(f"{name}: coverage of the bands, {n} answers", found[0]["coverage"])
            claim(f"{name}: coverage of the interval of held-out answers, {n} answers", found[-1]["coverage"])
            progress(f"{name}, {n} answers: coverage {found[0]['coverage']:.3f}")

        for n in N_ANSWERS:
            simulate("simulated songs", n, repeats)
        for music in music_sets(settings, settings.cache or CACHE, progress) if settings.sets else ():
            blocks = real_blocks(music.library)
            if len(blocks) != len(N_DIMENSIONS):
                raise Skipped(f"{music.name}: too few songs have a harmony")
            for n in N_ANSWERS:
                simulate(music.name, n, N_REPEATS_REAL[full], blocks)
        for n in (100, 300) if full else (100,):
            tried = [pool.submit(try_narrowing, who, n, seed, r) for who in range(N_LISTENERS) for r in range(narrowed)]
            covers, chosen, by_chance = (np.array(one) for one in zip(*(t.result() for t in tried), strict=True))
            rows.append({
                "narrowed: answers": n, "coverage": float(covers.mean()),
                "standard error": float(covers.mean(axis=1).std() / np.sqrt(len(covers))),
                "widest band": float(chosen.mean()), "widest band, random questions": float(by_chance.mean()),
            })  # fmt: skip
            claim(f"coverage of the bands, {n} answers to narrowing questions", float(covers.mean()))
            progress(f"narrowed, {n} answers: coverage {covers.mean():.3f}")
        for answered in load_found({"surveys": load_answers}, settings, progress).get("surveys", ()):
            for n in (100, 300):
                splits = [pool.submit(split, answered, n, seed, r) for r in range(n_splits)]
                agreed = np.array([task.result() for task in splits])
                rows.append(survey_row(answered.name, n, agreed))
                if answered.is_independent:
                    words = f"{answered.name}: how often two sets of {n} answers agree"
                    claims.append(at_least(words, float(agreed.mean()), 0.93))
                progress(f"{answered.name}, {n} answers: {agreed.mean():.3f}")
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    yield (
        "",
        "answers",
        "coverage (± standard error)",
        "lowest",
        "mean width",
        "coverage, undecided",
        "width, undecided",
    )
    for row in rows:
        name, n = next((words, row[words]) for words in row if words.endswith(("answers", "answers per set")))
        words = row.get("survey") or row.get("method") or name.partition(":")[0]
        words = f"{words}: agreement" if "survey" in row else words
        words += f" ({row['set']})" if row.get("set", "simulated songs") != "simulated songs" else ""
        coverage = row.get("coverage", row.get("agreement"))
        if "widest band" in row:
            widths = (format_share(row[f"widest band{questions}"]) for questions in ("", ", random questions"))
            words += " (widest band {}; with random questions {})".format(*widths)
        names = ("lowest", "mean width", "coverage, undecided", "mean width, undecided")
        figures = (SHARE_3(row[one]) if one in row else "" for one in names)
        yield words, f"{n:,}", f"{SHARE_3(coverage)} ± {SHARE_3(row['standard error'])}", *figures


TABLES: dict[str, Table] = {"taste_bands": _tabulate}


if __name__ == "__main__":
    main(
        "taste_bands", __doc__.splitlines()[0], run, data=("aset400", "bliss_triplets"), takes_sets=True,
        short="60 of 300 repeats (real music: 20 of 100; narrowed: 25 of 50), and 100 of 300 splits of each survey. "
        "The full form is worth running, because a coverage that misses its goal is within two standard errors of it",
    )  # fmt: skip
