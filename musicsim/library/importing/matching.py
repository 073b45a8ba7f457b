"""From songs as imports name them to songs of the library: by path, id, name, plain name, and by likeness.

What is found by likeness is only proposed: a person confirms it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.importing.places import PlaceIndex, is_web
from musicsim.library.importing.records import NamedSong
from musicsim.library.importing.spelling import exact, plain_artist, plain_title
from musicsim.library.library import Library
from musicsim.library.tags.artists import known_artist
from musicsim.progress import Progress, no_progress

How = Literal["path", "path end", "confirmed", "mbid", "exact", "loose"]
"""By what a song was found: the path of its file, the end of that path, what a person has said, the recording's id,
artist and title, or their plainest spelling."""

_LIKE = 0.84  # share of letters in common, in their order: one wrong letter in six, two in thirteen
_MAX_IN_BLOCK = 200
_PROGRESS_EVERY = 50
_MAX_PROPOSED_FOR = 5_000
_LEAD = re.compile(r"\s*(?:[,;/、]|\s[xX×]\s|\s(?:vs\.?|versus)\s).*$")


@dataclass(frozen=True, slots=True)
class Match:
    """The library's song for a song of an import, and by what it was found."""

    song_id: int
    how: How


@dataclass(frozen=True, slots=True)
class Proposal:
    """A song of the library that may be the one meant; its score in [0, 1] is the likeness of the spellings."""

    song: NamedSong  # as the import names it
    song_id: int
    label: str  # the library's song, as it is shown
    score: float
    count: int  # plays it would get, or tags


@dataclass(frozen=True, slots=True)
class KnownSong:
    """What choosing among songs of the library takes."""

    id: int
    title: str
    artist: str
    album: str
    duration_s: float
    is_missing: bool
    plain_artist: str
    plain_title: str
    version: str


class Matcher:
    """Finds songs of a library by how services name them.

    The library's songs are read once, with their names as they are shown and as their files have them. Memory: 2 kB a
    song, and 0.4 kB a file once a path is asked for.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._aliases = library.edits.aliases()
        self._confirmed: dict[tuple[str, str], int] = {}
        self._refused: set[tuple[str, str, int]] = set()
        for artist, title, song_id, is_same in library.listening.judged():
            if is_same:
                self._confirmed[exact(artist, title)] = song_id
            else:
                self._refused.add((*exact(artist, title), song_id))
        self._by_mbid: dict[str, list[KnownSong]] = defaultdict(list)
        self._exact: dict[tuple[str, str], list[KnownSong]] = defaultdict(list)
        self._plain: dict[tuple[str, str, str], list[KnownSong]] = defaultdict(list)
        self._plain_artists: set[str] = set()
        for row in _rows(library):
            self._enter(row)

    def _enter(self, row: sa.Row) -> None:
        names = dict.fromkeys(name for name in (row.artist, row.album_artist) if known_artist(name))
        title, version, kind = plain_title(row.title)
        for artist in names or {"": None}:
            key = plain_artist(artist) if artist else ""
            self._plain_artists.add(key)
            song = KnownSong(
                row.id, row.title, artist, row.album or "", row.duration_s, not row.is_here, key, title, version
            )
            if row.mb_recording_id:
                self._by_mbid[row.mb_recording_id.lower()].append(song)
            self._exact[exact(artist, row.title)].append(song)
            for variant in {version, kind if kind != "remix" else version}:
                self._plain[key, title, variant].append(song)

    def find(self, song: NamedSong) -> Match | None:
        """The song that is meant, without doubt.

        By the path of its file, whole or by its end, else as a person has said, by the recording's id, by artist and
        title, or by their plainest spelling. An end of a path counts if it is longer than that of any other song and
        tells songs apart: numbers, "Track 3" and "CD1" do not, and names that differ from the song's own take two
        parts more. A
        version (live, a remix) is the library's same version, else one of its kind (but for remixes), else the song
        itself. Of several songs it is one that is not missing, then one of the same album, then the longest.
        """
        if song.place and not is_web(song.place) and (match := self.at_place(song)):
            return match
        if not song.title:
            return None
        if self._confirmed:
            confirmed = self._confirmed.get(exact(song.artist, song.title))
            if confirmed is not None:
                return Match(confirmed, "confirmed")
        named = self.named(song)
        return None if named is None else Match(_best(named[1], song), named[0])

    def named(self, song: NamedSong) -> tuple[How, list[KnownSong]] | None:
        """All songs of its recording's id, else of its artist and title, else of their plainest spelling."""
        if song.mbid and (found := self._by_mbid.get(song.mbid.lower())):
            return "mbid", found
        artist = self._aliases.get(song.artist, song.artist)
        if found := self._exact.get(exact(artist, song.title)):
            return "exact", found
        lead = _LEAD.sub("", artist)
        names = {plain_artist(artist): None, plain_artist(lead or artist): None}
        if names.keys().isdisjoint(self._plain_artists):
            return None  # the title's plain spelling is what takes the time of a long list
        title, version, kind = plain_title(song.title)
        for name in names:
            for variant in dict.fromkeys((version, kind if kind != "remix" else version, "")):
                if found := self._plain.get((name, title, variant)):
                    return "loose", found
        return None

    @cached_property
    def _places(self) -> PlaceIndex:
        return PlaceIndex(_files(self._library))

    @cached_property
    def _near(self) -> dict[tuple[str, ...], list[KnownSong]]:
        """Songs that may be alike, by what they share; a third of the work, and of use to proposals only."""
        near: dict[tuple[str, ...], list[KnownSong]] = defaultdict(list)
        for known in sorted((k for found in self._exact.values() for k in found if k.artist), key=lambda k: k.id):
            for block in _blocks(known.plain_artist, known.plain_title):
                near[block].append(known)
        return near

    @cached_property
    def _names(self) -> dict[int, tuple[str, str]]:
        return {known.id: (known.plain_artist, known.plain_title) for found in self._exact.values() for known in found}

    def at_place(self, song: NamedSong) -> Match | None:
        """The song whose file a place names, by its whole path or its end; see :meth:`find`."""
        if (song_id := self._places.whole(song.place)) is not None:
            return Match(song_id, "path")
        ending = self._places.by_end(song.place)
        if ending is None:
            return None
        song_id, n_telling = ending
        if known_artist(song.artist) and song.title and self._names[song_id][0]:
            said = plain_artist(song.artist), plain_title(song.title)[0]
            n_telling += 1 if said == self._names[song_id] else -2
        return Match(song_id, "path end") if n_telling >= 1 else None

    def propose(self, songs: Iterable[tuple[NamedSong, int]], progress: Progress = no_progress) -> list[Proposal]:
        """For songs that were not found: the likest song of the library, where one is like enough.

        Songs of one artist and title are one, whatever their albums; the 5000 most counted are looked at, as
        comparing letters takes a few milliseconds a song, and come first. Titles that differ in a number ("No. 5",
        "No. 6") are never alike, and a song that a person has refused is not proposed again for the same name.
        """
        counts: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], NamedSong] = {}
        for song, count in songs:
            counts[song.artist, song.title] += count
            first.setdefault((song.artist, song.title), song)
        asked = sorted(counts.items(), key=lambda pair: -pair[1])[:_MAX_PROPOSED_FOR]
        found = []
        for i, (name, count) in enumerate(asked):
            if i % _PROGRESS_EVERY == 0:
                progress("comparing spellings", i, len(asked))
            song = first[name]
            best = self._likest(song)
            if best is not None:
                score, known = best
                found.append(Proposal(song, known.id, f"{known.title} — {known.artist}", score, count))
        return found

    def _likest(self, song: NamedSong) -> tuple[float, KnownSong] | None:
        from rapidfuzz.distance import Indel

        artist = plain_artist(self._aliases.get(song.artist, song.artist))
        title, version, _ = plain_title(song.title)
        digits = re.sub(r"\D", "", title)
        best: tuple[float, KnownSong] | None = None
        seen: set[tuple[str, str]] = set()
        spelt_here = exact(song.artist, song.title)
        for block in _blocks(artist, title):
            for known in self._near.get(block, ())[:_MAX_IN_BLOCK]:
                spelt = (known.plain_artist, known.plain_title)
                if spelt in seen or known.version not in ("", version):
                    continue
                if (*spelt_here, known.id) in self._refused:
                    continue
                seen.add(spelt)
                if re.sub(r"\D", "", known.plain_title) != digits:
                    continue
                score = min(map(Indel.normalized_similarity, spelt, (artist, title)))
                if score >= _LIKE and (best is None or score > best[0]):
                    best = score, known
        return best


def _blocks(artist: str, title: str) -> tuple[tuple[str, ...], ...]:
    """Songs are compared that share the artist, the title, or the beginnings of both."""
    return ("artist", artist), ("title", title), ("both", artist[:3], title[:3])


def _best(found: Sequence[KnownSong], song: NamedSong) -> int:
    if len(found) == 1:
        return found[0].id
    album = plain_title(song.album)[0] if song.album else None

    def rank(known: KnownSong) -> tuple[bool, bool, float, int]:
        is_on_album = album is not None and plain_title(known.album)[0] == album
        return not known.is_missing, is_on_album, known.duration_s, -known.id

    return max(found, key=rank).id


def _rows(library: Library) -> Sequence[sa.Row]:
    s = schema.songs.c
    is_here = s.id.in_(schema.ids_with_file()).label("is_here")
    query = sa.select(s.id, s.title, s.artist, s.album_artist, s.album, s.duration_s, s.mb_recording_id, is_here)
    with library.engine.connect() as connection:
        return connection.execute(query.order_by(s.id)).all()


def _files(library: Library) -> Iterator[tuple[Path, int, bool]]:
    """Path, song and presence of every file, and the last path of songs that have none any more."""
    f, s = schema.files.c, schema.songs.c
    with library.engine.connect() as connection:
        for path, song_id, gone in connection.execute(
            sa.select(f.path, f.song_id, f.missing_since).order_by(f.missing_since.is_not(None), f.path)
        ):
            yield path, song_id, gone is None
        for path, song_id in connection.execute(
            sa.select(s.last_path, s.id)
            .where(s.last_path.is_not(None), ~sa.exists().where(f.path == s.last_path))
            .order_by(s.id)
        ):
            yield path, song_id, False
