"""Real listeners: readers of small copies of the formats, and an experiment that finds the planted similarity."""

import bz2
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import real_listeners
from experiments.support import listened_songs
from experiments.support.listened_songs import SOUND, Sample, Sound, load_fma, load_jamendo, load_onion, read_plays
from musicsim.errors import DataSetAbsentError
from musicsim.library import Library

N_KINDS, N_ARTISTS, N_SONGS = 8, 48, 3
KINDS = np.repeat(np.arange(N_ARTISTS) % N_KINDS, N_SONGS)
ARTISTS = np.repeat(np.arange(N_ARTISTS), N_SONGS)
EVERY = Sample(artists=1000, songs=5, seed=0)


def planted(rng: np.random.Generator) -> np.ndarray:
    """Return vectors: two columns tell the kinds apart, and ten say nothing."""
    angle = 2 * np.pi * KINDS / N_KINDS
    useful = np.c_[np.cos(angle), np.sin(angle)] + 0.05 * rng.normal(size=(len(KINDS), 2))
    return np.c_[useful, rng.normal(size=(len(KINDS), 10))]


def save_compressed(path: Path, table: pd.DataFrame) -> None:
    path.write_bytes(bz2.compress(table.to_csv(sep="\t", index=False).encode()))


@pytest.fixture
def onion(shared, rng) -> Path:
    """Twelve listeners per kind play two songs of each of its artists six times each."""
    folder = shared / "music4all_onion"
    folder.mkdir()
    ids = np.array([f"Id{row:04d}" for row in range(len(KINDS))])
    information = {"id": ids, "artist": [f"Artist {a}" for a in ARTISTS], "song": "A song", "album_name": "Of, all"}
    pd.DataFrame(information).to_csv(folder / "id_information.csv", sep="\t", index=False)
    rows = [
        (f"user_{kind}_{n}", ids[row], 6)
        for kind in range(N_KINDS)
        for n in range(12)
        for row in np.flatnonzero((kind == KINDS) & (np.arange(len(KINDS)) % N_SONGS < 2))
    ]
    plays = pd.DataFrame(rows, columns=["user_id", "track_id", "count"])
    save_compressed(folder / "userid_trackid_count.tsv.bz2", plays)
    X = planted(rng)
    for file in listened_songs.FEATURES.values():
        columns = {"id": ids} | {f"column {j}": X[:, j] for j in range(X.shape[1])}
        save_compressed(folder / file, pd.DataFrame(columns))
    return folder


@pytest.fixture
def fma(shared, rng) -> Path:
    """The genre of a song is its kind; the last song has none."""
    folder = shared / "fma_metadata"
    folder.mkdir()
    index = pd.Index(np.arange(2, 2 + len(KINDS)), name="track_id")
    genres = [f"Genre {kind}" for kind in KINDS[:-1]] + [None]
    tracks = {
        ("album", "title"): "An album", ("artist", "id"): ARTISTS + 7, ("artist", "name"): "Some, one",
        ("set", "subset"): "small", ("track", "genre_top"): genres, ("track", "listens"): 10 * np.arange(len(KINDS)),
    }  # fmt: skip
    pd.DataFrame(tracks, index=index).to_csv(folder / "tracks.csv")
    X = planted(rng)
    columns = pd.MultiIndex.from_tuples(
        [("mfcc", "mean", f"{j:02d}") for j in range(X.shape[1])], names=["feature", "statistics", "number"]
    )
    pd.DataFrame(X, index=index, columns=columns).to_csv(folder / "features.csv")
    return folder


@pytest.fixture
def jamendo(shared) -> Path:
    """The artists of a kind share two tags; each artist also has a tag of its own."""
    folder = shared / "mtg_jamendo"
    folder.mkdir()
    lines = ["TRACK_ID\tARTIST_ID\tALBUM_ID\tPATH\tDURATION\tTAGS"]
    for row, (artist, kind) in enumerate(zip(ARTISTS, KINDS, strict=True)):
        tags = f"genre---{kind}\tmood/theme---{kind}" if row % N_SONGS else f"instrument---of{artist}"
        name = f"track_{row:07d}\tartist_{artist:06d}\talbum_000001\t{row % 100:02d}/{row}.mp3\t100.0"
        lines.append(f"{name}\t{tags}")
    (folder / "autotagging.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sound_of_jamendo(rng: np.random.Generator) -> Sound:
    paths = [Path(f"/music/{row % 100:02d}/{row}.low.mp3") for row in range(len(KINDS))]
    return Sound(paths, planted(rng))


# --- readers ---------------------------------------------------------------------------------------------


def test_plays_are_added_per_listener_and_artist_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(listened_songs, "_PLAYS_A_BLOCK", 2)
    table = {"user_id": ["u", "v", "u", "u", "v"], "track_id": ["a", "a", "b", "c", "x"], "count": [4, 1, 6, 2, 9]}
    save_compressed(tmp_path / "plays.tsv.bz2", pd.DataFrame(table))
    plays = read_plays(tmp_path / "plays.tsv.bz2", {"a": 0, "b": 0, "c": 1})
    assert plays.toarray().tolist() == [[10, 2], [1, 0]], "song x has no artist"


def test_onion_has_listeners_of_ten_plays_of_an_artist(onion):
    songs = load_onion(EVERY)
    assert len(songs.artists) == len(KINDS)
    assert list(songs.vectors) == ["MFCC codewords", "i-vectors"]
    assert songs.sharers.sum() == N_ARTISTS * 12, "six plays of each of two songs are twelve of the artist"
    relevant = songs.relevance(np.arange(len(KINDS)), k=5).relevant(0)
    assert relevant.tolist() == np.flatnonzero((KINDS[0] == KINDS) & (ARTISTS[0] != ARTISTS)).tolist()


def test_onion_without_numbers_of_a_song_leaves_it_out(onion):
    path = onion / "id_ivec256.tsv.bz2"
    table = pd.read_csv(path, sep="\t")
    table.loc[0, "column 3"] = np.nan
    save_compressed(path, table.drop(index=5))
    assert len(load_onion(EVERY).artists) == len(KINDS) - 2


def test_sample_draws_artists_and_some_of_their_songs(onion):
    songs = load_onion(Sample(artists=10, songs=2, seed=3))
    assert np.bincount(songs.artists).tolist() == [2] * 10
    assert songs.sharers.shape[1] == 10


def test_fma_has_genres_and_listens(fma):
    songs = load_fma(EVERY)
    assert len(songs.artists) == len(KINDS) - 1, "a song without a genre is left out"
    assert songs.popularity.tolist() == (10 * np.arange(len(KINDS) - 1)).tolist()
    assert songs.vectors["librosa's features"].shape == (len(KINDS) - 1, 12)
    assert set(ARTISTS[songs.relevance(np.arange(5), 10).relevant(0)] % N_KINDS) == {0}


def test_jamendo_needs_music_and_compares_the_tags_of_artists(jamendo, rng):
    with pytest.raises(DataSetAbsentError, match="has tags but no vectors: name a folder of its audio by --music"):
        load_jamendo(EVERY)
    songs = load_jamendo(EVERY, sound_of_jamendo(rng))
    assert songs.sharers.sum() == 3 * N_ARTISTS, "a tag of two songs counts once"
    relevant = songs.relevance(np.arange(len(KINDS)), k=5).relevant(0)
    assert set(KINDS[relevant]) == {0}
    with pytest.raises(DataSetAbsentError, match="MTG-Jamendo has no usable song in the given music"):
        load_jamendo(EVERY, Sound([Path("other.mp3")], np.zeros((1, 2))))


def test_sound_finds_the_songs_of_a_library(heard_library):
    with Library.open(heard_library, create=False) as library:
        sound = Sound.of(library)
        song = library.songs()[0]
    assert sound.rows([song.path.stem, "absent"]).tolist() == [sound.rows_of[song.path.stem], -1]
    assert np.isfinite(sound.vectors([song.path.stem])).all()


def test_shuffled_evidence_keeps_counts_and_loses_kinds(onion, fma):
    for songs in (load_onion(EVERY), load_fma(EVERY)):
        shuffled = songs.shuffled(np.random.default_rng(0))
        if songs.sharers is None:
            assert np.bincount(shuffled.labels).sum() == np.bincount(songs.labels).sum()
            assert (shuffled.labels != songs.labels).mean() > 0.5
        else:
            assert (shuffled.sharers.sum(axis=0) == songs.sharers.sum(axis=0)).all()
            assert (shuffled.sharers.sum(axis=1) == songs.sharers.sum(axis=1)).all()
            assert shuffled.sharers.multiply(songs.sharers).sum() < 0.5 * songs.sharers.sum()


# --- the experiment --------------------------------------------------------------------------------------


TINY = {"SHORT": {"artists": 1000, "splits": 2, "Cs": (10.0, 1e3), "max_cuts": 20}}


def test_experiment_finds_the_planted_gain_and_names_absent_data(run_script, shared, onion, fma):
    report = run_script("experiments.real_listeners", TINY, has_data=True)
    assert "MTG-Jamendo: tags of 55,609 songs (autotagging.tsv) is absent. " in report["settings"]["data"]
    assert all(claim["holds"] for claim in report["claims"])
    rows = report["rows"]
    assert {(row["set"], row["vectors"]) for row in rows} == {
        ("Music4All-Onion", "MFCC codewords"), ("Music4All-Onion", "i-vectors"), ("FMA", "librosa's features"),
    }  # fmt: skip
    for row in rows:
        assert row["AUC, low end"] > 0.05, "two of twelve columns say everything"
        lead, shuffled = (float(row[f"AUC, {name}"].split()[0]) for name in ("lead", "lead if shuffled"))
        assert row["queries"] != real_listeners.ALL or shuffled < lead / 2, "shuffled evidence teaches nothing"
    thirds = [row["n"] for row in rows if row["set"] == "FMA" and row["queries"] != real_listeners.ALL]
    assert sum(thirds) == next(row["n"] for row in rows if row["set"] == "FMA")


def test_measure_learns_from_tags_and_sound(jamendo, rng):
    songs = load_jamendo(EVERY, sound_of_jamendo(rng))
    protocol = replace(real_listeners.SHORT, Cs=(10.0, 1e3), max_cuts=20)
    result = real_listeners.measure(songs, SOUND, 0, protocol, seed=0)
    assert np.nanmean(result.learned["auc"]) > np.nanmean(result.plain["auc"]) + 0.05
    assert np.nanmean(result.shuffled_learned["auc"]) < 0.6


def test_music_of_a_library_is_described_by_sound(run_script, shared, heard_library):
    with Library.open(heard_library, create=False) as library:
        songs = library.songs()
    lines = ["TRACK_ID\tARTIST_ID\tALBUM_ID\tPATH\tDURATION\tTAGS"]
    for number, song in enumerate(songs):
        artist = int(song.artist.split()[1])
        path = f"{song.path.parent.name}/{song.path.stem}.mp3"
        tags = f"genre---{artist % 3}\tinstrument---{artist % 3}"
        lines.append(f"track_{number:07d}\tartist_{artist:06d}\talbum_000001\t{path}\t100.0\t{tags}")
    (shared / "mtg_jamendo").mkdir()
    (shared / "mtg_jamendo" / "autotagging.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = run_script("experiments.real_listeners", TINY, f"--library={heard_library}", has_data=True)
    (row,) = report["rows"]
    assert (row["set"], row["vectors"], row["queries"]) == ("MTG-Jamendo", SOUND, real_listeners.ALL)
    assert report["settings"]["songs of MTG-Jamendo"] == len(songs)
    assert float(row["AUC, plain"].split()[0]) > 0.6, "tones, noise and clicks sound different"
