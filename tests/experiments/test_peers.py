"""Sets of music, rows of scores, and peers in the experiments on real music, on the songs of the tests."""

import csv

import numpy as np
import pytest

from benchmarks.support.report import Settings
from experiments import ear, real_music
from experiments.support.ear_vectors import PACKAGE, join, standardize
from experiments.support.music_sets import MusicSet, find_pieces, music_sets
from experiments.support.peers import BOTH, EARLIER, SOUND, peer_scores
from experiments.support.pieces import Pieces, Scores, euclidean, scores
from experiments.support.score_rows import score_row
from experiments.support.sound_rivals import Musly
from musicsim.evaluation import bootstrap_pairs
from tests.extensions.embeddings.checkpoint_files import write_wheel
from tests.extensions.embeddings.test_musicnn import weights
from tests.learning import hush
from tests.sounds import write_song


def label(library, path):
    """Write a table in which two composers have six pieces each, in two packages."""
    songs = library.songs()
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "package"])
        for number, song in enumerate(songs):
            writer.writerow([f"{song.path.parent.name}/{song.path.name}", "ab"[number % 2], f"p{number // 3 % 2}"])
    return path


@pytest.fixture
def labels(tiny_library, tmp_path):
    """The table of :func:`label`, for the tiny library."""
    return label(tiny_library, tmp_path / "labels.csv")


def test_row_has_intervals_and_paired_leads(rng):
    pieces = Pieces((), np.array(["a"] * 6 + ["b"] * 5 + ["c"] * 7), np.array(["x", "y", "z"] * 6))
    of, reference = (scores(euclidean(rng.normal(size=(18, 3))), pieces) for _ in range(2))
    row = score_row("of", of, reference, pieces, 3)
    for measure, groups in {"P@5": pieces.composers, "package": pieces.packages}.items():
        ours, others = of.by_query[measure], reference.by_query[measure]
        _, low, high = bootstrap_pairs(ours, 0 * ours, groups.tolist(), random_state=3)
        assert row[f"{measure} interval"] == f"{low:.3f} to {high:.3f}"
        mean, low, high = bootstrap_pairs(ours, others, groups.tolist(), random_state=3)
        assert row[f"lead {measure}"] == f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    assert not any(key.startswith("lead") for key in score_row("reference", reference, reference, pieces, 3))


def test_row_of_one_composer_has_no_interval():
    pieces = Pieces((), np.array(["a"] * 6), np.array(["x"] * 6))
    of = Scores({measure: np.ones(6) for measure in ("P@1", "P@5", "package", "within")}, 0.0)
    assert score_row("of", of, of, pieces, 0).keys() == {"what", "P@1", "P@5", "package", "within", "skew"}


def test_sets_are_labeled_copies_fitted_without_shipped_constants(tiny_library, labels, tmp_path):
    settings = Settings(library=tiny_library.folder, labels=labels)
    (music,) = [
        (one.name, len(one.pieces), one.library.folder, one.library.models.native().id)
        for one in music_sets(settings, tmp_path / "cache", hush)
    ]
    assert music[:2] == ("set 1", 12)
    assert music[2] != tiny_library.folder
    assert not music[2].exists(), "the copy is deleted"
    assert music[3] != tiny_library.models.native().id
    assert settings.facts["set 1"] == "12 pieces, 12 queries by 2 composers"


def test_tags_label_other_music(tiny_library, collection, labels):
    """Songs shorter than 30 s do not count, and neither do shipped labels of other pieces."""
    assert len(find_pieces(tiny_library, collection)) == 0
    assert find_pieces(tiny_library, collection, labels).n_composers == 2


def test_folder_of_music_is_analyzed_once(tmp_path):
    music = tmp_path / "music"
    for number, kind in enumerate(["tones", "noise"]):
        (music / kind).mkdir(parents=True)
        write_song(music / kind / "long.flac", kind, seed=number, seconds=31.0, artist="Some  One")
    write_song(music / "noise" / "short.flac", "clicks", seed=9, seconds=25.0, artist="Some One")
    settings = Settings(sets=(music,))
    for _ in range(2):
        (found,) = [one.pieces for one in music_sets(settings, tmp_path / "cache", hush)]
        assert found.composers.tolist() == ["some one"] * 2
        assert sorted(found.packages.tolist()) == ["noise", "tones"]
    assert len(list((tmp_path / "cache").glob("library-*"))) == 1
    assert settings.inputs.keys() == {"set 1"}


def test_absent_peers_are_named(tiny_library, labels, tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.support.sound_rivals.version", lambda _: None)
    music = MusicSet("set 1", tiny_library, find_pieces(tiny_library, None, labels))
    found, missing = peer_scores(music, tmp_path, hush)
    assert list(found) == [SOUND, *EARLIER]
    reasons = ["pip download --no-deps musicnn", "bliss-audio is not installed", "pymusly is not installed"]
    assert all(reason in said for reason, said in zip(reasons, missing, strict=True))


def test_joined_space_has_shares(rng):
    one, other = rng.normal(size=(20, 3)), standardize(rng.normal(size=(20, 5)))
    X = join(one, other, 0.25)
    assert X[:, 3:].var(axis=0).sum() / X.var(axis=0).sum() == pytest.approx(0.25)
    np.testing.assert_allclose(np.linalg.norm(other, axis=1), 1, rtol=1e-6)


def test_musly_finds_similar_sounds(tmp_path):
    pytest.importorskip("pymusly")
    musly = Musly()
    kinds = ["noise", "noise", "tones", "tones"]
    files = [write_song(tmp_path / f"{n}.flac", kind, seed=n, seconds=6.0) for n, kind in enumerate(kinds)]
    D = musly.distances(np.stack([musly.analyze(str(file)) for file in files]))
    assert np.argsort(D, axis=1)[:, 1].tolist() == [1, 0, 3, 2]


def test_runs_report_models_peers_and_costs(tiny_library, labels, tmp_path):
    write_wheel(tmp_path / PACKAGE, weights())
    settings = Settings(library=tiny_library.folder, labels=labels, cache=tmp_path)
    rows, claims = real_music.run(settings, hush)
    peers = {row["what"]: row for row in rows if row["part"] == "peers"}
    assert {SOUND, BOTH, "MusiCNN, pooled channels", "MusiCNN as AudioMuse-AI"} <= peers.keys()
    assert all(row["set"] == "set 1" for row in peers.values())
    sound = next(row for row in rows if row["part"] == "models" and row["what"] == "Sound")
    assert [sound[m] for m in ("P@1", "P@5", "skew")] == [peers[SOUND][m] for m in ("P@1", "P@5", "skew")]
    best = max(row["P@1"] for what, row in peers.items() if "P@1" in row and what != BOTH)
    (lead,) = [claim.value for claim in claims if "over the best other, P@1" in claim.claim]
    assert lead == pytest.approx(peers[BOTH]["P@1"] - best)
    assert len(settings.inputs["musicnn"]) == 64

    rows, claims = ear.run(settings, hush)
    usual = next(row for row in rows if row["what"] == "Sound and ear, share 0.5, 1 of 6 patches")
    assert [usual[m] for m in ("P@1", "P@5", "within")] == [peers[BOTH][m] for m in ("P@1", "P@5", "within")]
    costs = {row["what"]: row["relative to the analysis"] for row in rows if row["part"] == "cost"}
    assert costs["analysis"] == 1
    assert costs["analysis and ear, 1 of 6 patches"] > 1 > costs["spectral shape, as part of it"]
    assert costs["librosa's MFCC"] > 0
    assert len(claims) == 3
