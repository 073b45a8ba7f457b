"""Plan the demo collection: decide everything about each song before it is rendered.

All random numbers come from one seed, in streams that depend on the style, artist and song. So a larger collection with
the same seed has the same styles and artists.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim.demo.names import draw_artist_names, draw_titles
from musicsim.demo.styles import STYLES, Style, find_style

_SONGS_PER_ALBUM = 6
_OGG_EVERY = 15  # songs by one artist in fifteen are Ogg Vorbis files, so that a demo library has two formats


@dataclass(frozen=True, slots=True)
class SongPlan:
    """The plan of one song; ``tempo`` is in beats per minute, and ``key`` is the tonic's pitch class (0 = C).

    Examples
    --------
    >>> from musicsim.demo import plan_collection
    >>> plan = plan_collection(seed=0)[0]
    >>> plan.genre, round(plan.tempo), plan.key
    ('Ambient', 60, 0)
    """

    style: str
    artist: str
    title: str
    album: str
    track: int
    year: int
    genre: str
    relative_path: str
    duration_s: float
    seed: int
    artist_seed: int
    tempo: float
    key: int
    n_bars: int
    energy: float
    brightness: float


def plan_collection(
    *, n_artists_per_style: int = 5, n_songs_per_artist: int = 6, styles: Sequence[str] | None = None, seed: int = 0
) -> list[SongPlan]:
    """Plan a collection of generated songs in all :data:`musicsim.demo.styles.STYLES`, or in `styles`.

    The songs alternate between styles and artists, so the library is varied from the start.

    Examples
    --------
    >>> from musicsim.demo import plan_collection
    >>> plans = plan_collection(n_artists_per_style=1, n_songs_per_artist=2, seed=0)
    >>> len(plans), len({plan.style for plan in plans}), len({plan.artist for plan in plans})
    (24, 12, 12)
    """
    for name, value in (("n_artists_per_style", n_artists_per_style), ("n_songs_per_artist", n_songs_per_artist)):
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1")
    if seed < 0:
        raise ValueError(f"seed={seed} must not be negative")
    chosen = list(STYLES) if styles is None else [find_style(s) for s in styles]
    if not chosen or len({s.name for s in chosen}) < len(chosen):
        raise ValueError("styles must contain at least one style, without duplicates")
    names = draw_artist_names(np.random.default_rng([seed, 1]), len(chosen) * n_artists_per_style)
    songs: dict[tuple[int, int], list[SongPlan]] = {}
    for s, style in enumerate(chosen):
        for a in range(n_artists_per_style):
            number = a * len(chosen) + s
            stream = [seed, 2, STYLES.index(style), a]
            songs[s, a] = _plan_artist(style, names[number], number, n_songs_per_artist, stream)
    return [
        songs[s, a][i]
        for i in range(n_songs_per_artist)
        for a in range(n_artists_per_style)
        for s in range(len(chosen))
    ]


def _plan_artist(style: Style, artist: str, number: int, n_songs: int, stream: list[int]) -> list[SongPlan]:
    """Plan an artist's songs, album after album; tempo and sound drift slightly from song to song."""
    rng = np.random.default_rng(stream)
    length = int(rng.integers(4, 19))
    first_year = int(rng.integers(style.years[0], max(style.years[0] + 1, style.years[1] - length)))
    energy = np.clip(style.taste[0] + 0.12 * rng.standard_normal(), 0.0, 1.0)
    artist_seed = int(rng.integers(2**31))
    usual_tempo = float(rng.uniform(*style.tempo))
    brightness = rng.beta(2.5, 2.5)
    keys = rng.choice(12, 3, replace=False).tolist()
    suffix = "ogg" if number % _OGG_EVERY == _OGG_EVERY - 1 else "flac"

    rng = np.random.default_rng([artist_seed, 3])
    n_albums = max(1 if n_songs < 4 else 2, -(-n_songs // _SONGS_PER_ALBUM))
    albums = draw_titles(rng, n_albums)
    years = np.sort(rng.integers(first_year, min(first_year + length, style.years[1]) + 1, n_albums))
    album_of = np.sort(np.arange(n_songs) % n_albums)
    plans = []
    for i, title in enumerate(draw_titles(rng, n_songs)):
        album = int(album_of[i])
        track = 1 + i - int(np.searchsorted(album_of, album))
        song_rng = np.random.default_rng([artist_seed, 4, i])
        tempo, n_bars, duration_s = _length(style, usual_tempo, song_rng)
        plans.append(
            SongPlan(
                style=style.name,
                artist=artist,
                title=title,
                album=albums[album],
                track=track,
                year=int(years[album]),
                genre=style.name,
                relative_path=f"{artist}/{track:02d} {title}.{suffix}",
                duration_s=duration_s,
                seed=int(song_rng.integers(2**31)),
                artist_seed=artist_seed,
                tempo=tempo,
                key=keys[int(song_rng.integers(len(keys)))],
                n_bars=n_bars,
                energy=round(float(np.clip(energy + 0.07 * song_rng.standard_normal(), 0.0, 1.0)), 4),
                brightness=round(float(np.clip(brightness + 0.1 * song_rng.standard_normal(), 0.0, 1.0)), 4),
            )
        )
    return plans


def _length(style: Style, tempo: float, rng: np.random.Generator) -> tuple[float, int, float]:
    """Return a song's tempo, number of bars, and duration; with its echo, it lasts 20 to 26 seconds."""
    low, high = style.tempo
    tempo = round(float(np.clip(tempo * 2.0 ** (0.05 * rng.standard_normal()), low, high)), 2)
    bar_s = style.beats * 60.0 / tempo
    tail_s = float(rng.uniform(1.6, 2.2))
    n_bars = int((rng.uniform(22.5, 25.0) - tail_s) / bar_s)
    if (n_bars % 2 == 1 or n_bars * bar_s + tail_s < 20.0) and (n_bars + 1) * bar_s + tail_s <= 26.0:
        n_bars += 1
    return tempo, n_bars, round(n_bars * bar_s + tail_s, 2)
