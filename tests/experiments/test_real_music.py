"""The measures of the experiment on real music against loops, and what it does where there is no music."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks._report import Settings
from experiments import real_music
from experiments._halves import _halves
from experiments._pieces import MIN_PIECES, Pieces, euclidean, labelled, scores, with_proximity
from musicsim.library import Library


@pytest.fixture
def pieces():
    """24 pieces: composers of 6, 5, 4 pieces and 9 unknown ones, in three packages."""
    composers = np.array(["a"] * 6 + ["b"] * 5 + ["c"] * 4 + [""] * 9)
    packages = np.array([f"package {i % 3}" for i in range(24)])
    return Pieces((), composers, packages)


def test_the_measures_are_those_of_loops(pieces, rng):
    D = euclidean(rng.normal(size=(24, 4)))
    found = scores(D, pieces)
    queries = [i for i in range(24) if pieces.composers[i] in "ab" and pieces.composers[i]]
    assert pieces.queries.tolist() == queries
    assert MIN_PIECES == 5
    for i in range(24):
        near = sorted((j for j in range(24) if j != i), key=lambda j: D[i, j])
        own = [pieces.composers[j] == pieces.composers[i] for j in near]
        beside = [j for j in near if pieces.packages[j] == pieces.packages[i]]
        assert found.by_query["package"][i] == (near[0] == beside[0])
        of_own = [j for j in beside if pieces.composers[j] == pieces.composers[i]]
        of_others = [j for j in beside if pieces.composers[j] not in ("", pieces.composers[i])]
        if i in queries:
            assert found.by_query["P@1"][i] == own[0]
            assert found.by_query["P@5"][i] == pytest.approx(np.mean(own[:5]))
        else:
            assert np.isnan(found.by_query["P@1"][i])
        if i in queries and of_own and of_others:
            assert found.by_query["within"][i] == (beside[0] in of_own)
        else:
            assert np.isnan(found.by_query["within"][i])


@pytest.mark.parametrize("share", [1.0, 1 / 3])
def test_proximity_orders_pieces_by_how_unusual_their_distance_is_for_both(rng, share):
    D = euclidean(rng.normal(size=(31, 5)))
    ours = with_proximity(D, share)
    near = [np.sort(np.delete(D[i], i))[: round(share * 30)] for i in range(31)]
    for i in (0, 7, 30):
        others = np.delete(np.arange(31), i)
        p = [
            np.prod([norm.sf(D[i, j], near[k].mean(), near[k].std()) for k in (i, j)])
            for j in others.tolist()
        ]
        assert np.argsort(ours[i, others]).tolist() == np.argsort(-np.array(p)).tolist()


def test_rows_of_the_table_are_found_by_folder_and_file_name(tiny_library, tmp_path):
    songs = sorted(tiny_library.songs(), key=lambda song: song.content_hash)
    table = tmp_path / "labels.csv"
    with table.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["path", "label", "package"])
        for song in songs[:5]:
            writer.writerow([f"usr/share/{song.path.parent.name}/{song.path.name}", song.artist, "elsewhere"])
    found = labelled(tiny_library, table)
    assert found.songs == tuple(songs[:5])
    assert found.composers.tolist() == [song.artist for song in songs[:5]]
    table.write_text("path,label,package\nno/such.ogg,x,y\n")
    with pytest.raises(ValueError, match="none of its rows is of a song"):
        labelled(tiny_library, table)


def test_composers_are_in_one_half_or_the_other(pieces):
    for is_out in _halves(pieces, 5, 0):
        for composer in "abc":
            assert len(set(is_out[pieces.composers == composer].tolist())) == 1
        assert not is_out[pieces.composers == ""].any()
        assert {bool(is_out[0]), bool(is_out[6])} == {False, True}


def test_without_music_or_labels_one_sentence_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("MUSICSIM_REAL_MUSIC", raising=False)
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path))
    settings = Settings()
    rows, claims = real_music.run(settings, print)
    assert rows == []
    assert not claims[0].holds
    assert "no labels" in settings.facts["skipped"]
    assert "no music" in settings.facts["skipped"]


@pytest.mark.slow
def test_a_small_library_loses_the_labels_that_are_hidden(tiny_library):
    from experiments import _small_libraries as small

    songs = tuple(tiny_library.songs())
    pieces = Pieces(
        songs, np.array([song.artist for song in songs]), np.array([song.genre for song in songs])
    )
    with small._made(tiny_library, pieces, 8, small.ARTISTS, 0) as (library, some, hidden):
        assert len(some) == len(library.songs()) == 6, "two of each package"
        assert hidden
        for song, composer in zip(some.songs, some.composers, strict=True):
            assert song.artist == (None if composer in hidden else composer)
            assert song.path.parent == Path("/music")
        row, leads = small._judged(library, some, small.NOTHING, hidden)
        assert row["kept"].startswith("the sound alone")
        assert set(leads) == {"today's", "the sound alone"}
    with Library.open(tiny_library.folder) as untouched:
        assert len(untouched.songs()) == 12
