"""Tests of map colors: labels keep theirs, folders have distinct names, and no number looks unknown."""

import colorsys

import numpy as np
import pytest

from musicsim.audio import Descriptors
from musicsim.errors import StorageError
from musicsim.explorer.snapshot import map_columns
from musicsim.explorer.snapshot.map_columns import (
    PALETTE,
    UNKNOWN_COLOR,
    Coloring,
    coloring,
    colors_offered,
    label_colors,
    regions_of,
)
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.sounds import write_song


def names_of(made: Coloring) -> list[str]:
    return [made.entries[code].name for code in made.codes]


def test_genre_keeps_color_as_others_grow(tiny_library):
    songs = tiny_library.songs()
    ids = [song.id for song in songs]
    before = label_colors(take_snapshot(tiny_library), "genre")
    tiny_library.edits.edit(ids[:6], {"genre": "A tango"})
    after = label_colors(take_snapshot(tiny_library), "genre")
    assert after["A tango"] not in before.values()
    assert {name: after[name] for name in after if name in before} == {
        name: before[name] for name in before if name in after
    }
    tiny_library.edits.edit(ids, {"genre": "A tango"})
    assert label_colors(take_snapshot(tiny_library), "genre") == {"A tango": after["A tango"]}
    for song in songs:
        tiny_library.edits.edit([song.id], {"genre": song.genre})
    assert label_colors(take_snapshot(tiny_library), "genre") == before, "those that come back have theirs"


@pytest.mark.long
def test_new_songs_change_no_colors(tiny_library, tmp_path):
    before = coloring(take_snapshot(tiny_library), "genre")
    color = {entry.name: entry.color for entry in before.entries}
    for n in range(6):
        tiny_library.add(write_song(tmp_path / f"{n}.flac", "noise", seed=50 + n, seconds=3))
    with Library.open(tiny_library.folder) as again:
        after = coloring(take_snapshot(again), "genre")
        assert {entry.name: entry.color for entry in after.entries} == color


def test_colors_of_removed_genres_are_reused(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    for n, song_id in enumerate(ids):
        tiny_library.edits.edit([song_id], {"genre": f"genre {n}"})
    tiny_library.update_colors("genre", lambda _: {f"gone {n}": n for n in range(len(PALETTE))})
    made = coloring(take_snapshot(tiny_library), "genre")
    assert sorted(names_of(made)) == sorted(f"genre {n}" for n in range(12)), "colors of labels that have gone"
    assert len({entry.color for entry in made.entries}) == 14
    tiny_library.update_colors("genre", lambda _: {"genre 3": 3, "genre 4": 999})
    assert label_colors(take_snapshot(tiny_library), "genre")["genre 3"] == PALETTE[3]


def test_overtaken_genre_gives_back_its_color(tiny_library, monkeypatch):
    monkeypatch.setattr(map_columns, "PALETTE", PALETTE[:3])
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.update_colors("genre", lambda _: {"rare": 0, "genre 9": 1})
    for n, song_id in enumerate(ids):
        tiny_library.edits.edit([song_id], {"genre": f"genre {n % 10}"})  # two songs with each of 0 and 1
    slots = label_colors(take_snapshot(tiny_library), "genre")
    assert slots == {"genre 0": PALETTE[2], "genre 1": PALETTE[0], "genre 2": PALETTE[1]}


def test_colors_work_if_saving_fails(tiny_library, monkeypatch):
    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(tiny_library, "update_colors", refuse)
    assert len(label_colors(take_snapshot(tiny_library), "genre")) == 3


def test_songs_without_genre_are_unknown(tiny_library):
    tiny_library.edits.edit([tiny_library.songs()[0].id], {"genre": ""})
    made = coloring(take_snapshot(tiny_library), "genre")
    assert names_of(made).count("unknown") == 1
    assert made.entries[-1].color == UNKNOWN_COLOR
    assert [entry.is_known for entry in made.entries] == [True] * (len(made.entries) - 1) + [False]


def test_folders_with_same_or_plain_names_show_their_parents(tiny_library, collection):
    moved = {}
    for n, song in enumerate(tiny_library.songs()):
        place = "a/live" if n < 4 else "b/live" if n < 8 else "b/sounds"
        moved[song.id] = collection / place / song.path.name
    with tiny_library.write() as connection:
        for song_id, path in moved.items():
            connection.exec_driver_sql(
                "UPDATE files SET path = ?, folder = ? WHERE song_id = ?", (str(path), str(path.parent), song_id)
            )
    tiny_library.edits.edit(list(moved), {"album": ""})
    now = take_snapshot(tiny_library)
    names = dict(zip(now.row_ids.tolist(), names_of(coloring(now, "folder")), strict=True))
    assert names == {i: " / ".join(path.parts[-3:-1]) for i, path in moved.items()}


def test_only_songs_without_value_are_gray(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    beats = {song_id: Descriptors(tempo=100.0 + n) for n, song_id in enumerate(ids[:8])}
    tiny_library.descriptors.save(beats | {song_id: Descriptors() for song_id in ids[8:]})
    now = take_snapshot(tiny_library)
    made = coloring(now, "tempo")
    of_song = dict(zip(now.row_ids.tolist(), made.codes.tolist(), strict=True))
    unknown = len(made.entries) - 1
    assert {i for i, code in of_song.items() if code == unknown} == set(ids[8:])
    assert (np.diff([of_song[i] for i in ids[:8]]) >= 0).all()
    assert 100 <= made.scale.low < made.scale.high <= 107
    for entry in made.entries[:-1]:
        rgb = [int(entry.color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        assert colorsys.rgb_to_hsv(*rgb)[1] > 0.5, f"{entry.color} looks like what is unknown"


@pytest.mark.parametrize(
    ("by", "unit", "words"),
    [
        ("energy", "dB/s", ("calm", "lively")), ("tempo", "beats/min", ("slow", "fast")), ("year", "", ("", "")),
        ("brightness", "Hz", ("dark", "bright")), ("loudness", "LUFS", ("quiet", "loud")),
    ],
)  # fmt: skip
def test_scale_has_words_from_low_to_high(tiny_library, by, unit, words):
    scale = coloring(take_snapshot(tiny_library), by).scale
    assert (scale.unit, (scale.low_word, scale.high_word)) == (unit, words)
    assert scale.low <= scale.high


def test_heaviest_tag_determines_song_color(tiny_library):
    song, other = tiny_library.songs()[:2]
    tiny_library.add_tags([
        {"song_id": song.id, "tag": "slow", "weight": 0.2}, {"song_id": song.id, "tag": "sad", "weight": 0.9},
        {"song_id": other.id, "tag": "slow", "weight": 0.1},
    ])  # fmt: skip
    now = take_snapshot(tiny_library)
    names = dict(zip(now.row_ids.tolist(), names_of(coloring(now, "tag")), strict=True))
    assert (names[song.id], names[other.id]) == ("sad", "slow")
    assert list(names.values()).count("unknown") == 10


@pytest.fixture
def clustered(tiny_library):
    """Split the tiny library into two clusters by tempo: slow songs of the first artist and two more, and fast ones."""
    now = take_snapshot(tiny_library)
    first = now.columns.artist.codes == now.columns.artist.codes[0]
    first[np.flatnonzero(~first)[:2]] = True
    tempo = {i: Descriptors(tempo=60.0 if slow else 150.0) for i, slow in zip(now.row_ids.tolist(), first, strict=True)}
    tiny_library.descriptors.save(tempo)
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = {"2": np.where(first, 0, 1)}
    return now


def test_regions_are_named_and_centered(clustered):
    (level,) = regions_of(clustered)
    genre = clustered.columns.genre.texts()[0]
    slow, fast = level
    assert slow.name == f"{genre}, slow"
    assert fast.name.endswith("fast")
    assert "slow" not in fast.name
    where = (clustered.clusters["2"] == 0) & (clustered.columns.genre.codes == clustered.columns.genre.codes[0])
    assert (slow.x, slow.y) == tuple(np.median(clustered.map[where], axis=0).tolist())
    assert (slow.n_songs, fast.n_songs) == (6, 6)
    made = coloring(clustered, "cluster")
    assert made.entries[0].name == slow.name
    assert made.entries[0].n_songs == 6


def test_region_in_the_middle_of_a_scale_is_compared_with_the_library(tiny_library, clustered):
    is_slow = dict(zip(clustered.row_ids.tolist(), clustered.clusters["2"] == 0, strict=True))
    tiny_library.descriptors.save({i: Descriptors(tempo=110.0 if slow else 130.0) for i, slow in is_slow.items()})
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = clustered.clusters
    assert [region.name.split(", ")[-1] for region in regions_of(now)[0]] == ["slower", "faster"]


def test_region_name_is_among_songs_of_its_genre(clustered):
    genres, rows = clustered.columns.genre, np.flatnonzero(clustered.clusters["2"] == 0)
    genres.codes[rows] = [0, 0, 0, 0, 1, 1]
    clustered.map[rows] = [[0, 0], [1, 0], [1, 0], [2, 0], [9, 9], [9, 9]]
    region = regions_of(clustered)[0][0]
    assert region.name.startswith(genres.names[0])
    assert (region.x, region.y) == (1.0, 0.0)


def test_region_is_named_after_what_sets_it_apart(clustered):
    columns = clustered.columns
    rows = np.flatnonzero(clustered.clusters["2"] == 0)
    for labels in (columns.genre, columns.artist, columns.folder):
        labels.codes[:] = 0
    assert "".join(region.name for region in regions_of(clustered)[0]) == "slowfast", "all songs have these labels"
    columns.genre.codes[:] = -1
    columns.genre.codes[rows[:2]] = 1  # the only genre of the region, but fewer than half of its songs have it
    columns.artist.codes[rows[:4]] = 1
    assert regions_of(clustered)[0][0].name == f"{columns.artist.names[1]}, slow"
    columns.genre.codes[rows[:5]] = 1
    assert regions_of(clustered)[0][0].name == f"{columns.genre.names[1]}, slow"


def test_map_shows_attribute_of_most_songs_first(tiny_library):
    songs = tiny_library.songs()
    ids = [song.id for song in songs]
    assert colors_offered(take_snapshot(tiny_library))[0] == "genre"
    assert "tag" not in colors_offered(take_snapshot(tiny_library))
    tiny_library.edits.edit(ids[:7], {"genre": ""})
    tiny_library.add_tags([{"song_id": ids[0], "tag": "slow", "weight": 1.0}])
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET folder = '/music'")
    assert colors_offered(take_snapshot(tiny_library))[0] == "sound", "all songs are in one folder"
    noisy = Descriptors(tempo=100.0, brightness=3000.0, energy=150.0)
    tiny_library.descriptors.save(dict.fromkeys(ids, noisy))
    assert colors_offered(take_snapshot(tiny_library))[0] == "energy", "all songs are of one kind"
    tiny_library.descriptors.save(dict.fromkeys(ids, Descriptors()))
    offered = colors_offered(take_snapshot(tiny_library))
    assert "sound" not in offered
    tiny_library.descriptors.save(dict.fromkeys(ids, noisy))
    with tiny_library.write() as connection:
        for song_id in ids[:6]:
            connection.exec_driver_sql("UPDATE files SET folder = '/music/other' WHERE song_id = ?", (song_id,))
    offered = colors_offered(take_snapshot(tiny_library))
    assert offered[0] == "folder"
    assert {"genre", "tag"} <= set(offered)


def test_region_is_not_called_calm_and_loud(tiny_library):
    now = take_snapshot(tiny_library)
    is_calm = np.arange(12) < 6
    heard = {True: Descriptors(energy=1.0, loudness=-5.0), False: Descriptors(energy=9.0, loudness=-30.0)}
    tiny_library.descriptors.save({i: heard[bool(calm)] for i, calm in zip(now.row_ids.tolist(), is_calm, strict=True)})
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = {"2": np.where(is_calm, 0, 1)}
    for region in regions_of(now)[0]:
        words = set(region.name.split(", "))
        assert words & {"calm", "loud", "lively", "quiet"}
        assert not {"calm", "loud"} <= words
        assert not {"lively", "quiet"} <= words


def test_regions_with_the_same_words_get_one_more(tiny_library, monkeypatch):
    monkeypatch.setattr(map_columns, "_MIN_NAMED", 4)
    ids = take_snapshot(tiny_library).row_ids.tolist()
    # regions 0 and 1 are loud and lively; the next difference is that three of four songs of region 0 are bright
    bright = (0, 1, 2, 4, 8)
    heard = {
        i: Descriptors(
            energy=200.0 if n < 8 else 1.0,
            loudness=-5.0 if n < 8 else -40.0,
            brightness=3000.0 if n in bright else 500.0,
        )
        for n, i in enumerate(ids)
    }
    tiny_library.descriptors.save(heard)
    tiny_library.edits.edit(ids, {"genre": "", "album": "", "artist": ""})
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = {"3": np.arange(12) // 4}
    names = [region.name for region in regions_of(now)[0]]
    assert len(set(names)) == 3
    assert [len(name.split(", ")) for name in names[:2]] == [3, 2]


def test_small_or_average_regions_have_no_name(clustered):
    clustered.__dict__["clusters"] = {"3": np.array([0] * 4 + [1] * 4 + [-1] * 4)}
    assert [region.name for region in regions_of(clustered)[0]] == ["", ""]
    made = coloring(clustered, "cluster")
    assert [(entry.name, entry.n_songs) for entry in made.entries] == [("others", 8), ("unknown", 4)]
