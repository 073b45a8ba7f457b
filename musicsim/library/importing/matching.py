"""Match imported songs to the library's songs by path, MusicBrainz id or names; propose songs with similar names."""

import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from musicsim.library.tags.artists import parse_artist
from musicsim.progress import Progress, no_progress

How = Literal["path", "path end", "confirmed", "mbid", "exact", "loose"]
"""How a song was matched: by file path, end of the path, a user's choice, recording id, names, or simplified names."""

_SIMILAR = 0.84  # minimum share of common letters, in the same order; allows one wrong letter in six
_MAX_IN_BLOCK = 200
_PROGRESS_EVERY = 50
_MAX_PROPOSED_FOR = 5_000
_LEAD = re.compile(r"\s*(?:[,;/、]|\s[xX×]\s|\s(?:vs\.?|versus)\s).*$")


@dataclass(frozen=True, slots=True)
class SongMatch:
    song_id: int
    how: How


@dataclass(frozen=True, slots=True)
class Proposal:
    """A possible match; its score in [0, 1] is the similarity of the names."""

    song: NamedSong  # the song as named in the import
    song_id: int
    label: str  # title and artist of the library's song
    score: float
    count: int  # number of plays or tags that the song would get


@dataclass(frozen=True, slots=True)
class KnownSong:
    """A song in the library, listed once for each of its artists."""

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
    """Finds songs by their names and paths in other programs; 2 kB per song, plus 0.4 kB per file for paths."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._aliases = library.edits.aliases()
        self._confirmed: dict[tuple[str, str], int] = {}
        self._refused: set[tuple[str, str, int]] = set()
        for artist, title, song_id, is_same in library.listening.list_decisions():
            if is_same:
                self._confirmed[exact(artist, title)] = song_id
            else:
                self._refused.add((*exact(artist, title), song_id))
        self._by_mbid: dict[str, list[KnownSong]] = defaultdict(list)
        self._exact: dict[tuple[str, str], list[KnownSong]] = defaultdict(list)
        self._plain: dict[tuple[str, str, str], list[KnownSong]] = defaultdict(list)
        self._plain_artists: set[str] = set()
        s = schema.songs.c
        is_here = s.id.in_(schema.ids_with_file()).label("is_here")
        query = sa.select(s.id, s.title, s.artist, s.album_artist, s.album, s.duration_s, s.mb_recording_id, is_here)
        with library.engine.connect() as connection:
            rows = connection.execute(query.order_by(s.id)).all()
        for row in rows:
            self._add(row)

    def _add(self, row: sa.Row) -> None:
        artists = dict.fromkeys(name for name in (row.artist, row.album_artist) if parse_artist(name))
        title, version, kind = plain_title(row.title)
        for artist in artists or {"": None}:
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

    def find(self, song: NamedSong) -> SongMatch | None:
        """Return the match for a song if it is unambiguous.

        Methods, in order: the path or its end, a person's choice, the recording id, artist and title, and their plain
        spellings. If the names differ, the path ends must share two more parts (fewer if the length is known, see
        :meth:`find_by_path`). A version (live, remix) matches the
        same version, else the same kind (except remixes), else the plain song. Songs with a file are preferred.
        """
        if song.place and not is_web(song.place) and (match := self.find_by_path(song)):
            return match
        if not song.title:
            return None
        if self._confirmed:
            confirmed = self._confirmed.get(exact(song.artist, song.title))
            if confirmed is not None:
                return SongMatch(confirmed, "confirmed")
        candidates = self.find_by_names(song)
        return None if candidates is None else SongMatch(_select(candidates[1], song), candidates[0])

    def find_by_names(self, song: NamedSong) -> tuple[How, list[KnownSong]] | None:
        """Find songs by recording id, then by names, then by plain spellings; return the method and all songs found."""
        if song.mbid and (songs := self._by_mbid.get(song.mbid.lower())):
            return "mbid", songs
        artist = self._aliases.get(song.artist, song.artist)
        if songs := self._exact.get(exact(artist, song.title)):
            return "exact", songs
        lead = _LEAD.sub("", artist)
        names = {plain_artist(artist): None, plain_artist(lead or artist): None}
        if names.keys().isdisjoint(self._plain_artists):
            return None  # computing plain titles takes most of the time in a long import
        title, version, kind = plain_title(song.title)
        for name in names:
            for variant in dict.fromkeys((version, kind if kind != "remix" else version, "")):
                if songs := self._plain.get((name, title, variant)):
                    return "loose", songs
        return None

    @cached_property
    def _places(self) -> PlaceIndex:
        return PlaceIndex(_files(self._library))

    @cached_property
    def _blocks(self) -> dict[tuple[str, ...], list[KnownSong]]:
        """Songs keyed by their :func:`_block_keys`; only proposals need them."""
        blocks: dict[tuple[str, ...], list[KnownSong]] = defaultdict(list)
        for known in sorted((k for songs in self._exact.values() for k in songs if k.artist), key=lambda k: k.id):
            for key in _block_keys(known.plain_artist, known.plain_title):
                blocks[key].append(known)
        return blocks

    @cached_property
    def _names(self) -> dict[int, tuple[str, str]]:
        return {known.id: (known.plain_artist, known.plain_title) for songs in self._exact.values() for known in songs}

    def find_by_path(
        self, song: NamedSong, has_length: Callable[[int], bool | None] = lambda _: None
    ) -> SongMatch | None:
        """Return the song whose file has this path, or a path with the same end; see :meth:`find`.

        `has_length` returns whether a song is known to be as long. Then one shared part is enough if the artist or the
        title is the same, and two if both differ.
        """
        if (song_id := self._places.find_whole(song.place)) is not None:
            return SongMatch(song_id, "path")
        ending = self._places.find_by_end(song.place)
        if ending is None:
            return None
        song_id, n_telling = ending
        if parse_artist(song.artist) and song.title and self._names[song_id][0]:
            names = plain_artist(song.artist), plain_title(song.title)[0]
            n_same = sum(map(operator.eq, names, self._names[song_id]))
            n_telling += 1 if n_same == 2 else n_same - 1 if has_length(song_id) else -2
        return SongMatch(song_id, "path end") if n_telling >= 1 else None

    def propose(self, songs: Iterable[tuple[NamedSong, int]], progress: Progress = no_progress) -> list[Proposal]:
        """Return the library's most similar song for each unmatched song, if it is similar enough.

        Only the 5000 songs with the highest counts are compared; each takes a few milliseconds. Titles with different
        numbers ("No. 5", "No. 6") are never similar.
        """
        counts: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], NamedSong] = {}
        for song, count in songs:
            counts[song.artist, song.title] += count
            first.setdefault((song.artist, song.title), song)
        compared = sorted(counts.items(), key=lambda pair: -pair[1])[:_MAX_PROPOSED_FOR]
        proposals = []
        for i, (names, count) in enumerate(compared):
            if i % _PROGRESS_EVERY == 0:
                progress("comparing spellings", i, len(compared))
            if best := self._most_similar(first[names]):
                score, known = best
                proposals.append(Proposal(first[names], known.id, f"{known.title} — {known.artist}", score, count))
        return proposals

    def _most_similar(self, song: NamedSong) -> tuple[float, KnownSong] | None:
        from rapidfuzz.distance import Indel

        artist = plain_artist(self._aliases.get(song.artist, song.artist))
        title, version, _ = plain_title(song.title)
        digits = re.sub(r"\D", "", title)
        best: tuple[float, KnownSong] | None = None
        seen: set[tuple[str, str]] = set()
        exact_names = exact(song.artist, song.title)
        for key in _block_keys(artist, title):
            for known in self._blocks.get(key, ())[:_MAX_IN_BLOCK]:
                names = (known.plain_artist, known.plain_title)
                if names in seen or known.version not in ("", version):
                    continue
                if (*exact_names, known.id) in self._refused:
                    continue
                seen.add(names)
                if re.sub(r"\D", "", known.plain_title) != digits:
                    continue
                score = min(map(Indel.normalized_similarity, names, (artist, title)))
                if score >= _SIMILAR and (best is None or score > best[0]):
                    best = score, known
        return best


def _block_keys(artist: str, title: str) -> tuple[tuple[str, ...], ...]:
    """Return a song's keys: artist, title, and the starts of both; songs are only compared if they share a key."""
    return ("artist", artist), ("title", title), ("both", artist[:3], title[:3])


def _select(candidates: Sequence[KnownSong], song: NamedSong) -> int:
    if len(candidates) == 1:
        return candidates[0].id
    album = plain_title(song.album)[0] if song.album else None

    def rank(known: KnownSong) -> tuple[bool, bool, float, int]:
        is_on_album = album is not None and plain_title(known.album)[0] == album
        return not known.is_missing, is_on_album, known.duration_s, -known.id

    return max(candidates, key=rank).id


def _files(library: Library) -> Iterator[tuple[Path, int, bool]]:
    """Yield (path, song id, whether the file exists) for all files, then for the last paths of songs without files."""
    f, s = schema.files.c, schema.songs.c
    listed = sa.select(f.path, f.song_id, f.missing_since.is_(None)).order_by(f.missing_since.is_not(None), f.path)
    lost = sa.select(s.last_path, s.id, sa.false()).where(s.last_path.is_not(None)).order_by(s.id)
    with library.engine.connect() as connection:
        for query in (listed, lost.where(~sa.exists().where(f.path == s.last_path))):
            yield from map(tuple, connection.execute(query))
