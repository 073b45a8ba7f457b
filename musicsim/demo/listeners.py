"""Generate listeners for the demo collection: tables of plays, tags and playlists in the general import formats.

The tables follow hidden rules for musicsim's methods to discover: tastes, popularity, moods, and kinds of playlists.
"""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.demo.collection import SongPlan
from musicsim.demo.styles import STYLES, find_style


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of playlist: the weights of its reasons for the next song, and the songs that it starts with.

    For the reasons ``style``, ``artist``, ``decade`` and ``album``, the next song shares that property. For ``mood``,
    it has one of ``moods``; for ``energy``, a similar energy; for ``near``, a style that appeals to a similar taste.
    ``anything`` allows any song. ``energy_range`` limits the songs chosen for all other reasons.
    """

    name: str
    weights: dict[str, float]
    moods: tuple[str, ...] = ()
    energy_range: tuple[float, float] = (0.0, 1.0)


CATEGORIES: tuple[Category, ...] = (
    Category(
        "late night", {"mood": 5, "near": 2, "style": 2, "anything": 0.5}, ("calm", "dreamy", "dark"), (0.0, 0.55)
    ),
    Category("workout", {"energy": 4, "mood": 3, "style": 1, "anything": 0.5}, ("energetic", "driving"), (0.6, 1.0)),
    Category(
        "road trip", {"decade": 3, "mood": 3, "near": 2, "artist": 1, "anything": 1}, ("driving", "happy", "nostalgic")
    ),
    Category("same decade", {"decade": 7, "style": 1, "anything": 0.7}),
    Category("one artist leads to another", {"artist": 5, "near": 3, "album": 1, "anything": 0.5}),
    Category("dinner with friends", {"mood": 5, "near": 2, "anything": 0.6}, ("warm", "groovy", "elegant"), (0.1, 0.6)),
    Category("deep in one style", {"style": 7, "artist": 1, "decade": 1, "anything": 0.4}),
    Category("concentration", {"energy": 4, "mood": 3, "album": 1, "anything": 0.4}, ("calm", "spacious"), (0.0, 0.4)),
    Category("dance floor", {"style": 3, "energy": 3, "near": 2, "anything": 0.3}, (), (0.65, 1.0)),
    Category("mixed bag", {"anything": 6, "style": 1, "decade": 1}),
)


@dataclass(frozen=True, slots=True)
class _Songs:
    """Columns of the collection that the hidden rules use; each row is a song."""

    style: Int64Array
    artist: Int64Array
    album: Int64Array
    decade: Int64Array
    energy: Float64Array
    moods: list[frozenset[str]]
    taste: Float64Array


def write_listening(
    plans: Sequence[SongPlan],
    folder: str | os.PathLike[str],
    *,
    n_listeners: int = 2000,
    n_playlists: int = 1500,
    seed: int = 0,
) -> None:
    """Write ``plays.csv``, ``tags.csv`` and ``playlists.csv`` for a collection to a folder; create it if necessary.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from musicsim.demo import plan_collection, write_listening
    >>> plans = plan_collection(n_artists_per_style=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_listening(plans, folder, n_listeners=20, n_playlists=10)
    ...     print(sorted(path.name for path in Path(folder).iterdir()))
    ...
    ['playlists.csv', 'plays.csv', 'tags.csv']
    """
    if not plans:
        raise ValueError("plans is empty: create plans with plan_collection()")
    if n_listeners < 1 or n_playlists < 0 or seed < 0:
        raise ValueError(
            f"n_listeners={n_listeners} must be at least 1; n_playlists={n_playlists} and seed={seed} at least 0"
        )
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    names = [(p.artist, p.title) for p in plans]
    songs = _songs(plans, np.random.default_rng([seed, 10]))
    popularity = _popularity(songs, np.random.default_rng([seed, 11]))
    plays = _plays(songs, popularity, n_listeners, np.random.default_rng([seed, 12]))
    _write(
        target / "plays.csv",
        ("listener", "artist", "title", "plays"),
        ((f"listener{who:05d}", *names[song], count) for who, song, count in plays),
    )
    tags = _tags(plans, songs, np.random.default_rng([seed, 13]))
    _write(target / "tags.csv", ("artist", "title", "tag", "weight"), ((*names[i], t, w) for i, t, w in tags))
    lists = _playlists(songs, popularity, n_playlists, np.random.default_rng([seed, 14]))
    rows = (
        (f"playlist{number:05d}", category, position, *names[song])
        for number, (category, rows) in enumerate(lists)
        for position, song in enumerate(rows, start=1)
    )
    _write(target / "playlists.csv", ("playlist", "category", "position", "artist", "title"), rows)


def _write(path: Path, header: tuple[str, ...], rows: Iterable[tuple]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _number_values(values: Sequence[object]) -> Int64Array:
    numbers = {value: i for i, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[v] for v in values], dtype=np.int64)


def _songs(plans: Sequence[SongPlan], rng: np.random.Generator) -> _Songs:
    order = [s.name for s in STYLES]
    styles = [find_style(p.style) for p in plans]
    artist = _number_values([p.artist for p in plans])
    # A song's position in taste space is that of its style, shifted by its artist and its own sound.
    habit = 0.12 * rng.standard_normal((artist.max() + 1, 5))
    taste = np.array([[*s.taste, p.brightness] for s, p in zip(styles, plans, strict=True)]) + habit[artist]
    moods = []
    for style, plan in zip(styles, plans, strict=True):
        own = {m for m in style.moods if rng.random() < 0.8}
        if plan.energy > 0.7:
            own.add("energetic")
        if plan.energy < 0.25:
            own.add("calm")
        own.add("bright" if plan.brightness > 0.65 else "dark" if plan.brightness < 0.3 else style.moods[0])
        moods.append(frozenset(own))
    return _Songs(
        style=np.array([order.index(p.style) for p in plans], dtype=np.int64),
        artist=artist,
        album=_number_values([(p.artist, p.album) for p in plans]),
        decade=np.array([p.year // 10 for p in plans], dtype=np.int64),
        energy=np.array([p.energy for p in plans]),
        moods=moods,
        taste=taste,
    )


def _popularity(songs: _Songs, rng: np.random.Generator) -> Float64Array:
    """Return the share of plays that each song would have if all listeners had the same taste; it has a long tail."""
    artists = rng.permutation(songs.artist.max() + 1) + 1.0
    weight = artists[songs.artist] ** -0.7 * rng.lognormal(0.0, 0.8, songs.artist.size)
    return weight / weight.sum()


def _plays(
    songs: _Songs, popularity: Float64Array, n_listeners: int, rng: np.random.Generator
) -> Iterator[tuple[int, int, int]]:
    """Yield (listener, song, plays); 5% of the plays are independent of taste."""
    n_styles = len(STYLES)
    present = np.unique(songs.style)
    fame = rng.dirichlet(np.full(present.size, 2.0))
    for listener in range(n_listeners):
        home = rng.choice(present, size=int(rng.choice([1, 2, 3], p=[0.45, 0.35, 0.2])), p=fame)
        loved = np.full(n_styles, 0.012)
        loved[home] += rng.dirichlet(np.full(home.size, 2.0)) if home.size > 1 else 1.0
        center = songs.taste[rng.choice(np.flatnonzero(songs.style == home[0]))]
        farther = np.exp(-np.square(songs.taste - center).sum(axis=1) / (2.0 * 0.3**2))
        artist_love = rng.lognormal(0.0, 0.9, songs.artist.max() + 1)
        score = popularity * (loved[songs.style] + 0.25 * farther) * artist_love[songs.artist]
        chance = 0.95 * score / score.sum() + 0.05 / score.size
        n_songs = int(np.clip(rng.lognormal(3.3, 0.7), 5, 0.6 * score.size + 1))
        played = rng.choice(score.size, size=min(n_songs, score.size), replace=False, p=chance)
        devotion = rng.lognormal(0.7, 0.5)
        counts = rng.lognormal(np.log(devotion) + 0.5 * np.log1p(chance[played] * score.size), 0.9)
        for song, count in zip(played, np.clip(np.ceil(counts), 1, 999), strict=True):
            yield listener, int(song), int(count)


def _tags(plans: Sequence[SongPlan], songs: _Songs, rng: np.random.Generator) -> Iterator[tuple[int, str, int]]:
    """Yield (song, tag, weight); about one tag in twelve is wrong, and one song in twenty is untagged."""
    everything = sorted({t for s in STYLES for t in (*s.words, *s.moods)})
    for i, plan in enumerate(plans):
        if rng.random() < 0.05:
            continue
        style = find_style(plan.style)
        given: dict[str, float] = {}
        for rank, word in enumerate(style.words):
            if rng.random() < 0.85 - 0.08 * rank:
                given[word] = (100, 70, 50, 40)[rank]
        for mood in sorted(songs.moods[i]):
            if rng.random() < 0.65:
                given[mood] = 45
        if rng.random() < 0.5:
            given[f"{plan.year // 10 * 10}s"] = 30
        for _ in range(int(rng.poisson(0.45))):
            given.setdefault(everything[int(rng.integers(len(everything)))], 15)
        for tag, typical in given.items():
            yield i, tag, int(np.clip(round(typical * rng.lognormal(0.0, 0.35)), 1, 100))


def _near_styles(songs: _Songs) -> BoolArray:
    """Return a mask (n_styles, n_styles): for each style with songs, itself and its three nearest styles with songs."""
    n = len(STYLES)
    taste = np.array([s.taste for s in STYLES])
    distance = np.square(taste[:, None] - taste[None]).sum(axis=2)
    present = np.unique(songs.style)
    near = np.zeros((n, n), dtype=bool)
    for s in present:
        order = present[np.argsort(distance[s, present], kind="stable")]
        near[s, order[:4]] = True
    return near


def _playlists(
    songs: _Songs, popularity: Float64Array, n_playlists: int, rng: np.random.Generator
) -> Iterator[tuple[str, list[int]]]:
    """Yield (category, songs in order); playlists do not repeat songs."""
    near = _near_styles(songs)
    liking = np.sqrt(popularity)
    for i in range(n_playlists):
        category = CATEGORIES[i % len(CATEGORIES)]
        weights = np.array(list(category.weights.values()), dtype=np.float64)
        low, high = category.energy_range
        allowed = (songs.energy >= low) & (songs.energy <= high)
        moody = np.array([not m.isdisjoint(category.moods) for m in songs.moods])
        start = allowed & moody if category.moods else allowed
        free = np.ones(songs.style.size, dtype=bool)
        length = min(int(rng.integers(8, 26)), songs.style.size)
        rows = [_draw(start if start.any() else free, liking, rng)]
        while len(rows) < length:
            free[rows[-1]] = False
            reason = str(rng.choice(list(category.weights), p=weights / weights.sum()))
            pool = free & _pool(songs, near, reason, rows[-1], moody)
            if reason != "anything" and (pool & allowed).any():
                pool &= allowed
            rows.append(_draw(pool if pool.any() else free, liking, rng))
        yield category.name, rows


def _pool(songs: _Songs, near: BoolArray, reason: str, song: int, moody: BoolArray) -> BoolArray:
    """Return the songs that a reason allows after `song`."""
    if reason == "mood":
        return moody
    if reason == "near":
        return near[songs.style[song], songs.style]
    if reason == "energy":
        return np.abs(songs.energy - songs.energy[song]) < 0.06
    if reason == "anything":
        return np.ones(songs.style.size, dtype=bool)
    column: Int64Array = getattr(songs, reason)
    return column == column[song]


def _draw(pool: BoolArray, liking: Float64Array, rng: np.random.Generator) -> int:
    rows = np.flatnonzero(pool)
    cumulative = np.cumsum(liking[rows])
    return int(rows[min(int(np.searchsorted(cumulative, rng.random() * cumulative[-1])), rows.size - 1)])
