"""Covers drawn from sound: one per song, the same in every library, in the song's color on the map."""

import itertools
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from musicsim.audio import KEYS, MODES
from musicsim.explorer.snapshot.drawn_covers import draw_cover
from musicsim.explorer.snapshot.map_columns import coloring
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.sound_colors import SOUNDS, sound_codes, sound_of
from musicsim.library import Library
from tests.sounds import write_song

SVG = "{http://www.w3.org/2000/svg}"
EMPTY = np.empty(0, dtype=np.float32)
OUTLINE = np.random.default_rng(0).random(400).astype(np.float32)


def colors_of(cover: bytes) -> set[str | None]:
    """Return the colors at both ends of the background."""
    return {stop.get("stop-color") for stop in ElementTree.fromstring(cover).iter(f"{SVG}stop")}


def shapes_of(cover: bytes) -> list[str]:
    (motif,) = ElementTree.fromstring(cover).iter(f"{SVG}g")
    return [shape.tag for shape in motif]


def contrast_with_white(color: str) -> float:
    """Return the contrast ratio of WCAG 2.2."""
    coded = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)


@pytest.fixture
def song(tiny_library):
    return tiny_library.songs()[0]


def test_cover_has_song_color_on_map(tiny_library):
    now = take_snapshot(tiny_library)
    made = coloring(now, "sound")
    color = {i: made.entries[code].color for i, code in zip(now.row_ids.tolist(), made.codes.tolist(), strict=True)}
    for song in tiny_library.songs():
        assert color[song.id] in colors_of(draw_cover(song, tiny_library.outline(song.id)))


def test_cover_is_same_in_two_libraries(tmp_path):
    covers = []
    first = 0
    for name, seeds in (("one", (1, 2)), ("two", (7, 8, 1))):
        with Library.open(tmp_path / name) as library:
            for seed in seeds:
                path = tmp_path / name / f"{seed}.wav"
                library.add(write_song(path, "chords", seed=seed, seconds=4))
                song = library.songs()[-1]
                if seed == 1:
                    first = song.id
            covers.append(draw_cover(library.song(first), library.outline(first)))
    assert covers[0] == covers[1]


def test_songs_have_different_covers(tiny_library):
    songs = tiny_library.songs()
    assert len({draw_cover(song, tiny_library.outline(song.id)) for song in songs}) == len(songs)


def test_any_song_has_valid_small_cover(song):
    values = itertools.product(
        (None, 20.0, 108.0, 137.9, 138.0, 300.0), (None, "C", "F#"), (None, *MODES), (None, -90.0, 0.0),
        (None, 10.0, 2000.0, 9000.0), (None, 0.0, 100.0, 400.0),
    )  # fmt: skip
    names = ("tempo", "key", "mode", "loudness", "brightness", "energy")
    for some in values:
        cover = draw_cover(replace(song, **dict(zip(names, some, strict=True))), OUTLINE)
        assert len(cover) < 4000
        assert b"nan" not in cover
        assert all(contrast_with_white(color) >= 3 for color in colors_of(cover)), some
        assert shapes_of(cover)


@pytest.mark.parametrize("outline", [EMPTY, np.zeros(3), np.ones(1), np.full(400, 0.5), OUTLINE])
@pytest.mark.parametrize("tempo", [None, 80.0, 120.0, 160.0])
def test_any_outline_has_cover(song, outline, tempo):
    cover = draw_cover(replace(song, tempo=tempo), outline.astype(np.float32))
    assert b"nan" not in cover
    assert shapes_of(cover)


@pytest.mark.parametrize("tempo", [None, 80.0, 120.0, 160.0])
def test_each_motif_shows_the_waveform(song, tempo):
    same = replace(song, tempo=tempo)
    assert draw_cover(same, OUTLINE) != draw_cover(same, OUTLINE[::-1])


def test_tempo_selects_motif(song):
    shapes = [tuple(shapes_of(draw_cover(replace(song, tempo=t, energy=90.0), OUTLINE))) for t in (None, 80, 120, 160)]
    assert len(set(shapes)) == 4


def test_lively_song_has_more_lines(song):
    for tempo in (None, 80.0, 120.0, 160.0):
        calm, lively = (draw_cover(replace(song, tempo=tempo, energy=energy), OUTLINE) for energy in (60.0, 140.0))
        assert len(lively) > len(calm)


def test_key_mode_and_loudness_shade_the_cover(song):
    some = [
        replace(song, key=key, mode=mode, loudness=loudness)
        for key in KEYS[:6] for mode in MODES for loudness in (-30.0, -10.0)
    ]  # fmt: skip
    covers = {draw_cover(one, OUTLINE) for one in some}
    assert len(covers) == len(some)
    assert len(set.intersection(*map(colors_of, covers))) == 1, "the color on the map is in all of them"


def test_kinds_of_sounds_follow_the_words(song):
    assert sound_of(1000.0, 60.0).name == "dark, calm"
    assert sound_of(3000.0, 150.0).name == "bright, lively"
    assert (sound_of(2000.0, 60.0).name, sound_of(1000.0, 100.0).name) == ("calm", "dark")
    assert sound_of(2000.0, 100.0).name == "in between"
    assert sound_of(None, 60.0) is None
    assert sound_of(1000.0, None) is None


def test_kinds_of_sounds_cover_all_songs():
    brightness, energy = np.meshgrid(np.linspace(0, 8000, 200), np.linspace(0, 300, 100))
    codes = sound_codes(brightness.ravel(), energy.ravel())
    assert np.unique(codes).tolist() == list(range(len(SOUNDS)))
    one = [SOUNDS.index(sound_of(b, e)) for b, e in zip(brightness.flat, energy.flat, strict=True)]
    assert codes.tolist() == one


def test_colors_of_sounds_differ_and_suit_both_pages():
    hues = sorted(sound.shade.hue for sound in SOUNDS)
    assert min(np.diff([*hues, hues[0] + 360])) >= 30
    for sound in SOUNDS:
        color = sound.shade.hex()
        assert contrast_with_white(color) >= 3
        red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
        assert 0.3 * red + 0.59 * green + 0.11 * blue > 75, "the map makes darker colors lighter on a dark page"
        assert (max(red, green, blue) - min(red, green, blue)) / max(red, green, blue) > 0.4
