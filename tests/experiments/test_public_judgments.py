"""The protocol on public judgments: ceilings in closed form, folds, and a planted metric in a generated file."""

from itertools import product

import numpy as np
import pytest

from benchmarks.support.report import Settings, Skipped
from experiments.public_judgments import (
    BY_COMPONENT,
    BY_TRIPLE,
    MLR_FULL,
    POE,
    POE_DIAGONAL,
    UNLEARNED,
    Protocol,
    Trial,
    ceilings,
    component_of,
    judge,
    run,
    with_vectors,
)
from experiments.support.surveys import agreed_by_all, agreed_by_others
from musicsim.library.importing import load_judgments
from tests.experiments.votes import magnatagatune_file

N_TRIPLES, N_VOTES = 120, 6
TINY = Protocol(validations=1, tol=0.2, max_iter=30, max_cuts=20, order_grid=(100.0,), mlr_grid=(30.0,))


def quiet(_):
    pass


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Clips of which listeners hear two of six dimensions; nine of ten votes are by ear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N_TRIPLES + 1, 6))
    questions = []
    for n in range(N_TRIPLES):  # pairs of questions share a clip
        clips = [2 * n, 2 * n + 1, 2 * n + 2 if n % 2 == 0 else 2 * n - 1]
        heard = X[clips, :2]
        distances = [np.sum((heard[(k + 1) % 3] - heard[(k + 2) % 3]) ** 2) for k in range(3)]
        chosen = np.where(rng.random(N_VOTES) < 0.9, np.argmin(distances), rng.integers(3, size=N_VOTES))
        votes = np.bincount(chosen, minlength=3)
        questions.append((clips, votes.tolist()))
    path = tmp_path_factory.mktemp("planted") / "comparisons_final.csv"
    path.write_text(magnatagatune_file(questions), encoding="utf-8")
    judged = load_judgments(path)
    return judged, X[[int(clip) for clip in judged.clips]]


@pytest.mark.parametrize(("votes", "against"), [*product(range(4), range(4))][1:])
def test_ceilings_equal_definition(votes, against):
    sides = [1] * votes + [0] * against
    agreed = []
    for n, side in enumerate(sides):
        others = sides[:n] + sides[n + 1 :]
        lead = sum(1 if other == side else -1 for other in others)
        agreed.append(0.5 if lead == 0 else float(lead > 0))
    n_for, n_against = np.array([votes]), np.array([against])
    assert agreed_by_others(n_for, n_against) == pytest.approx([np.mean(agreed)])
    best = max(np.mean(sides), 1 - np.mean(sides))
    assert agreed_by_all(n_for, n_against) == pytest.approx([best])


def test_components_join_clips_of_a_question():
    questions = np.array([[0, 1, 2], [3, 4, 5], [2, 6, 7], [8, 9, 3]])
    a, b, c, d = component_of(questions, 10).tolist()
    assert (a, b) == (c, d)
    assert a != b


def test_folds_keep_triples_and_components_together(planted):
    trial = Trial(*planted, seed=0)
    for groups in (trial.triples, trial.components):
        splits = trial.splits(groups, 0)
        assert sorted(np.concatenate([split.test for split in splits])) == list(range(N_TRIPLES))
        for split in splits:
            assert not set(groups[split.train]) & set(groups[split.test])
    for split in trial.splits(trial.components, 0):
        assert not set(trial.questions[split.test].ravel()) & set(split.songs)


def test_ceilings_of_generated_votes(planted):
    most, others = ceilings(Trial(*planted, seed=0))
    assert 0.5 < others["votes, from"] < others["votes"] < others["votes, to"] < most["votes, to"]
    assert others["votes"] < most["votes"] < 1


def test_planted_metric_is_learned(planted):
    settings = Settings(full=False)
    rows, claims = judge(*planted, TINY, settings, quiet)
    of = {(row["held out"], row["method"]): row for row in rows}
    ceiling = of["nothing", "ceiling: the other listeners"]
    for by, method in product((BY_TRIPLE, BY_COMPONENT), (POE, POE_DIAGONAL, MLR_FULL)):
        assert of[by, method]["majority: lead, from"] > 0.02
        assert of[by, method]["votes: lead, from"] > 0.02
        assert of[by, UNLEARNED]["votes"] < of[by, method]["votes"] < ceiling["votes, to"]
    assert settings.facts["votes"] == N_VOTES * N_TRIPLES
    assert len(claims) == 6


def test_too_few_components_are_not_held_out(planted):
    judged, X = planted
    few = type(judged)(judged.data_set, judged.form, judged.clips, judged.paths, judged.questions[:8], judged.votes[:8])
    settings = Settings(full=False)
    rows, claims = judge(few, X, TINY, settings, quiet)
    assert [row["held out"] for row in rows] == ["nothing", "nothing"]
    assert "not measured by component" in settings.facts
    assert claims == []


def test_names_missing_files(tmp_path, styles_library):
    file = tmp_path / "comparisons_final.csv"
    file.write_text(magnatagatune_file([((0, 1, 2), (1, 0, 0))]))
    settings = Settings(labels=file, library=styles_library)
    with pytest.raises(Skipped, match="clips of 0 questions; 20 are needed"):
        run(settings, quiet)
    assert settings.facts["unmatched"] == 1


def test_library_gives_vectors_of_matched_clips(tmp_path, styles_library):
    from musicsim.explorer.snapshot.snapshot import snapshot_under
    from musicsim.library import Library

    file = tmp_path / "comparisons_final.csv"
    with Library.open(styles_library) as library:
        songs = library.songs()[:4]
        paths = {n: f"{song.path.parent.name}/{song.path.name}" for n, song in enumerate(songs)} | {9: "no/where.mp3"}
        file.write_text(magnatagatune_file([((9, 1, 2), (1, 0, 0)), ((3, 0, 2), (0, 2, 1))], paths))
        known, X = with_vectors(load_judgments(file), library)
        snapshot = snapshot_under(library, "Sound")
        expected = snapshot.vectors_at(snapshot.rows_of([songs[int(clip)].id for clip in known.clips]))
    assert set(known.clips) == {"0", "2", "3"}
    assert known.votes.tolist() == [[0, 2, 1]]
    assert [known.clips[i] for i in known.questions[0]] == ["3", "0", "2"]
    assert np.array_equal(X, expected)
