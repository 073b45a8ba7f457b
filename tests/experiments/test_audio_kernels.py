"""The experiment on kernels of sound and of tags: comparisons, weights, and a run on a small library."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from benchmarks.support.report import main
from experiments import audio_kernels
from experiments.audio_kernels import ANY_KEY, SHORT, TIMBRE, comparisons_from_labels
from musicsim.relevance import Relevance
from tests.sounds import KINDS, open_library, write_song


def test_comparisons_follow_labels():
    genres = np.repeat([0, 1, 2], 8)
    artists = np.repeat(np.arange(12), 2)
    asked = comparisons_from_labels(genres, artists, 400, random_state=0)
    assert len(asked) > 100
    i, near, same, far = asked.T
    np.testing.assert_array_equal(i, same)
    by_genre = (genres[near] == genres[i]) & (genres[far] != genres[i])
    by_artist = (artists[near] == artists[i]) & (artists[far] != artists[i]) & (genres[far] == genres[i])
    assert (by_genre | by_artist).all()
    assert by_genre.any()
    assert by_artist.any()
    assert (near != i).all()
    np.testing.assert_array_equal(asked, comparisons_from_labels(genres, artists, 400, random_state=0))


def test_songs_with_unique_labels_get_no_comparisons():
    alone = np.arange(5)
    assert comparisons_from_labels(alone, alone, 50, random_state=0).shape == (0, 4)


def test_weights_favor_informative_distances():
    rng = np.random.default_rng(0)
    kinds = np.arange(30) % 3
    told = (kinds[:12, None] != kinds[None, 12:]) + 0.1 * rng.random((12, 18))
    asked = Relevance.from_labels(kinds).restrict(np.arange(12), np.arange(12, 30))
    weights = audio_kernels.choose_weights([rng.random((12, 18)) * 5, told], asked)
    assert weights.sum() == pytest.approx(1)
    assert weights[1] > 0.5


def test_counts_cover_requested_songs():
    table = audio_kernels.tabulate_counts(
        [7, 3, 7, 9], ["rock", "jazz", "jazz", "folk"], [1, 2, 3, 4], {3: 0, 7: 1, 8: 2}
    )
    assert sparse.issparse(table)
    # columns: folk, jazz, rock
    np.testing.assert_array_equal(table.toarray(), [[0, 2, 0], [0, 3, 1], [0, 0, 0]])


@pytest.mark.long
def test_runs_on_any_library(tmp_path, monkeypatch, capsys):
    for n in range(36):
        kind, artist = KINDS[n % 3], f"{KINDS[n % 3]} {n // 3 % 6}"
        write_song(
            tmp_path / f"music/{artist}/{n}.flac", kind, seed=n, seconds=2.0, title=f"{n}", artist=artist, genre=kind
        )
    with open_library(tmp_path / "library") as library:
        library.add(tmp_path / "music")
    tiny = replace(SHORT, splits=2, codewords=16, n_comparisons=100, Cs=(10.0,), max_iter=50, max_cuts=10)
    monkeypatch.setattr(audio_kernels, "SHORT", tiny)
    arguments = ["--json", "--library", str(tmp_path / "library")]
    main("audio_kernels", "", audio_kernels.run, takes_library=True, arguments=arguments)
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["settings"]["songs"] == 36
    rows = {(row["combination"], row["kernels"]): row for row in report["rows"]}
    assert {("alone", TIMBRE), ("alone", ANY_KEY), ("alone", "rhythm")} <= set(rows)
    assert not any("tags" in kernels for _, kernels in rows), "nobody has said anything"
    # tones, noise and clicks: timbre tells them apart
    assert rows["alone", TIMBRE]["AUC"] > 0.9
    assert len(report["claims"]) == 5


def test_library_without_aspects_gives_clear_error(tmp_path):
    with open_library(tmp_path / "library") as library, pytest.raises(SystemExit, match="add its folders again"):
        audio_kernels.collection_of(library, 10, 0)
