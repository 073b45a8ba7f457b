"""Verdicts on noise: how often is a training called better if its evidence says nothing, and how often if it does?

Simulated libraries have 132 songs by 42 artists, some with many songs. A song is its artist's place plus noise, in 16
dimensions; three of them are taste, and the others are twice as loud. The evidence is random:

- plays: 200 listeners of 12 artists each, all equally likely, or with weights 1 / rank
- playlists: 100 lists of 10 songs, all equally likely
- artists, genres: permuted among the songs
- answers: 150 questions, which song of three does not belong

The verdict should then be "Better" in at most 5% of the runs. For planted tastes, there are 200 songs by 100 artists,
and 600 listeners, who draw artists with weights exp(s t) / rank. Here, s is the strength, and t is the inner product of
the tastes of the listener and the artist.

"Before" is the rule without shuffled evidence: the interval of AUC resamples the artists of the queries only. It is
blank for the automatic choice, which also compares methods with shuffled evidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np

from benchmarks.support.columns import KeptRow, KeptRows, Lines, Table, group_rows, list_values
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning import judging
from musicsim.explorer.learning.automatic import learn_automatically
from musicsim.explorer.learning.closed_form import learn_means
from musicsim.explorer.learning.from_answers import Answered, learn_from_answers
from musicsim.explorer.learning.ranking import learn_from_relevance
from musicsim.explorer.learning.task import CS, Quiet
from musicsim.explorer.learning.two_way import RESAMPLED, ResampledScores
from musicsim.explorer.learning.verdict import BETTER, Lead, leads_above
from musicsim.explorer.requests.training import AUTOMATIC, RANKING, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.progress import no_progress

SIZES = (132, 42, 200)  # songs, artists and listeners
PLANTED_SIZES = (200, 100, 600)
N_TASTES, N_DIMENSIONS, LOUDER, SPREAD = 3, 16, 2.0, 0.5
N_HEARD = 12
N_LISTS, LENGTH, N_GENRES, N_QUESTIONS = 100, 10, 8, 150
STRENGTHS = (0.5, 1.0, 2.0)
UNIFORM, POPULAR, PLANTED = "plays, uniform", "plays, by popularity", "planted taste"
RANDOM = {UNIFORM: "plays", POPULAR: "plays", "playlists": "playlists", "artists": "artist", "genres": "genre"}
ONLY_ANSWERS = "from answers"
METHODS: dict[str, dict[str, Any]] = {
    "quick": {"quick": True},
    "automatic": {},
    "mean": {"method": "mean"},
    "local": {"method": "local"},
    "ranking": {"C": 1e4},
}
SLOWER = {"automatic": 4, "ranking": 2, ONLY_ANSWERS: 4}  # how many times fewer runs in the short form


@dataclass(frozen=True, slots=True)
class Songs:
    """Simulated songs: their vectors, artists, and the tastes of the artists."""

    X: Float64Array
    artist: Int64Array
    taste: Float64Array

    @classmethod
    def draw(cls, n: int, n_artists: int, rng: np.random.Generator) -> "Songs":
        """Draw songs; each artist has one or more."""
        others = rng.choice(n_artists, n - n_artists, p=_shares(n_artists))
        artist = np.sort(np.append(np.arange(n_artists), others))
        places = rng.standard_normal((n_artists, N_DIMENSIONS))
        X = places[artist] + SPREAD * rng.standard_normal((n, N_DIMENSIONS))
        X[:, N_TASTES:] *= LOUDER
        return cls(X, artist, places[:, :N_TASTES])


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a training is called better, and whether it was by the old rule; None if that is not known."""

    is_better: bool
    was_better: bool | None


def _shares(n: int) -> Float64Array:
    """Return shares in proportion to 1 / rank."""
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()


def draw_plays(songs: Songs, n: int, by_rank: bool, strength: float, rng: np.random.Generator) -> Int64Array:
    """Draw the artists of each of n listeners, (n, n_heard)."""
    n_artists = len(songs.taste)
    popularity = rng.permutation(_shares(n_artists)) if by_rank else np.full(n_artists, 1 / n_artists)
    heard = []
    for _ in range(n):
        weights = popularity * np.exp(strength * (songs.taste @ rng.standard_normal(N_TASTES)))
        heard.append(rng.choice(n_artists, N_HEARD, replace=False, p=weights / weights.sum()))
    return np.array(heard)


def make_snapshot(songs: Songs, what: str, strength: float, rng: np.random.Generator) -> Snapshot:
    """Return the part of a snapshot that training reads, with evidence of one kind."""
    n = len(songs.X)
    artist, genre, lists = songs.artist, np.zeros(n, np.int64), []
    plays = SimpleNamespace(listeners=[], listener=np.empty(0, np.int64), song_id=np.empty(0, np.int64))
    if what in (UNIFORM, POPULAR, PLANTED):
        n_listeners = (PLANTED_SIZES if what == PLANTED else SIZES)[2]
        heard = draw_plays(songs, n_listeners, what != UNIFORM, strength, rng)
        first = np.searchsorted(artist, np.arange(len(songs.taste)))
        plays.listeners = list(range(n_listeners))
        plays.listener, plays.song_id = np.repeat(np.arange(n_listeners), N_HEARD), first[heard].ravel()
    elif what == "playlists":
        lists = [rng.choice(n, LENGTH, replace=False).tolist() for _ in range(N_LISTS)]
    elif what == "artists":
        artist = rng.permutation(artist)
    else:
        genre = rng.integers(N_GENRES, size=n)
    plays.count = np.full(len(plays.listener), 10)
    texts = {"artist": artist, "group": artist, "genre": genre, "folder": np.zeros(n, np.int64)}
    made = [SimpleNamespace(song_ids=ids) for ids in lists]
    library = SimpleNamespace(
        plays=lambda: plays, settings={"hub_reduction": True},
        saved_playlists=SimpleNamespace(all=lambda: made, made_by_people=lambda: made),
    )  # fmt: skip
    model = SimpleNamespace(
        encoder_=SimpleNamespace(uses_audio=False),
        add_metric=lambda L, _X: SimpleNamespace(metric_=L.T @ L, local_=None),
    )
    snapshot = SimpleNamespace(
        X=songs.X, row_ids=np.arange(n), n_indexed=n, library=library, model=model,
        columns=SimpleNamespace(**{name: _texts(name, codes) for name, codes in texts.items()}),
        rows_of=lambda ids: np.asarray(ids, np.int64),
    )  # fmt: skip
    return cast("Snapshot", snapshot)


def _texts(name: str, codes: Int64Array) -> SimpleNamespace:
    return SimpleNamespace(texts=lambda: [f"{name} {code}" for code in codes.tolist()])


def judge_once(what: str, method: str, strength: float, seed: int) -> Verdict:
    """Train once on simulated evidence; a training that is refused is not better."""
    rng = np.random.default_rng([seed, len(what)])
    songs = Songs.draw(*(PLANTED_SIZES if what == PLANTED else SIZES)[:2], rng)
    if method == ONLY_ANSWERS:
        judged = learn_from_answers(
            songs.X, draw_answers(len(songs.X), rng), Cs=CS, random_state=seed, n_shuffles=judging.N_SHUFFLES,
            on_progress=lambda *_: False,
        )  # fmt: skip
        lead = judged.lead
        return Verdict(lead is not None and lead.words == BETTER, lead is not None and lead.low > 0)
    settings = LearningSettings(RANDOM.get(what, "plays"), random_state=seed, **METHODS[method])
    snapshot, watcher = make_snapshot(songs, what, strength, rng), Quiet(no_progress)
    found: list[bool] = []

    def note(
        before: ResampledScores, after: ResampledScores, shuffled: Sequence[tuple[ResampledScores, ResampledScores]]
    ) -> dict[str, Lead]:
        found.append(is_better_without_null(before, after))
        return leads_above(before, after, shuffled)

    with patch.object(judging, "leads_above", note):
        try:
            if settings.method == AUTOMATIC:
                report = learn_automatically(snapshot, settings, [], watcher, {})[1]
            elif settings.method == RANKING:
                report = learn_from_relevance(snapshot, settings, [], watcher)[1]
            else:
                report = learn_means(snapshot, settings, [], watcher)[2]
        except ModelError:
            return Verdict(False, False)
    return Verdict(report["is_better"], None if method == "automatic" else found[0])


def draw_answers(n: int, rng: np.random.Generator) -> Answered:
    """Draw questions about n songs, and answers: any of the three songs may be the odd one."""
    answered = Answered([], [])
    for _ in range(N_QUESTIONS):
        a, b, odd = rng.choice(n, 3, replace=False).tolist()
        answered.comparisons.append(np.array([(a, b, a, odd), (a, b, b, odd)]))
        answered.questions.append(("odd", *sorted((a, b, odd))))
    return answered


def is_better_without_null(before: ResampledScores, after: ResampledScores) -> bool:
    """Return the verdict by resampled queries only: AUC rises, and no measure falls."""
    gains = {name: after.of_queries[name] - before.of_queries[name] for name in RESAMPLED}
    no_loss = all(np.nanquantile(gain, 0.975) >= 0 for gain in gains.values())
    return before.n_artists > 1 and no_loss and bool(np.nanquantile(gains["auc"], 0.025) > 0)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Count the verdicts for every kind of evidence and every method."""
    n_null, n_planted = (200, 100) if settings.full else (40, 20)
    trials = [(what, method, 0.0) for what in RANDOM for method in METHODS]
    trials += [("answers", ONLY_ANSWERS, 0.0)]
    trials += [(PLANTED, method, strength) for method in METHODS for strength in STRENGTHS]
    judge = kept_parts("verdict", settings).cache(judge_once)
    rows: list[Row] = []
    n_false = dict.fromkeys([*METHODS, ONLY_ANSWERS], 0)
    n_runs = dict(n_false)
    for what, method, strength in trials:
        n = (n_planted if strength else n_null) // (1 if settings.full else SLOWER.get(method, 1))
        seeds = [settings.seed * 10_000 + number for number in range(n)]
        verdicts = [judge(what, method, strength, seed) for seed in seeds]
        before = [verdict.was_better for verdict in verdicts if verdict.was_better is not None]
        n_before, n_better = sum(before) if before else None, sum(one.is_better for one in verdicts)
        counts = {"runs": n, "before": n_before, "better": n_better}
        rows.append({"evidence": what, "method": method, "strength": strength} | counts)
        progress(f"{what}, {method}, {strength:g}: {n_before} before, {n_better} now, of {n}")
        if not strength:
            n_false[method] += n_better
            n_runs[method] += n
    claims = [
        at_most(f"{method}: share of false “Better”", n_false[method] / n_runs[method], 0.05) for method in n_false
    ]
    settings.facts.update(n_shuffles=judging.N_SHUFFLES)
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


def _before_and_now(row: KeptRow) -> str:
    before = "" if row["before"] is None else f"{row['before']} / "
    return f"{before}{row['better']} of {row['runs']}"


def _tabulate(rows: KeptRows) -> Lines:
    methods = list_values(rows, "method")
    yield "“Better”, before / now, of all runs", *methods
    for (evidence, strength), same in group_rows(rows, "evidence", "strength"):
        counts = {row["method"]: row for row in same}
        words = f"{evidence}, strength {strength:g}" if strength else evidence
        yield words, *(_before_and_now(counts[method]) if method in counts else "" for method in methods)


TABLES: dict[str, Table] = {"verdict": _tabulate}


if __name__ == "__main__":
    main(
        "verdict", __doc__.splitlines()[0], run, has_parts=True,
        short="40 of 200 runs with random evidence and 20 of 100 with planted tastes; half of these for the ranking, "
        "and a quarter for the automatic choice and answers. The full form is worth running, because five times as "
        "many runs show smaller differences",
    )  # fmt: skip
