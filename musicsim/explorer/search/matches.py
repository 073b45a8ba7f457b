"""Matches of a search box: artists, albums, songs and words for a text, with typos, and names from a list."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_matching_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Words, parse_sound, parse_words
from musicsim.library import Song
from musicsim.wording import clean, count

_MAX_MATCHES = 20
_MAX_TEXT = 200
FEW = 200
"""Maximum number of names that clients get as a whole list; in longer lists, users search by typing."""

MatchKind = Literal["artist", "album", "song", "words", "name"]


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A match for a text: `title`, followed by `sub` in gray."""

    kind: MatchKind
    value: str  # a name; a song id; an album's artist and name on two lines; or words
    title: str
    sub: str = ""


KINDS: tuple[MatchKind, ...] = ("artist", "album", "song", "words")
ONLY_SONGS: tuple[MatchKind, ...] = ("song",)


def trim_text(text: str) -> str:
    """Return the first 200 characters of a typed text, with single spaces."""
    return " ".join(text[:_MAX_TEXT].split())


def song_matches(snapshot: Snapshot, text: str, *, kinds: Collection[MatchKind] = KINDS) -> list[TextMatch]:
    """Return at most twenty artists, albums and songs whose names contain `text`, and a match for `text` as words."""
    results = snapshot.find(text, _MAX_MATCHES)
    matches = [
        TextMatch("artist", clean(name), clean(name), f"artist, {count(n, 'song')}") for name, n in results.artists
    ]
    for name, by, n in results.albums:
        sub = " · ".join(["album", *filter(None, [clean(by)]), count(n, "song")])
        matches.append(TextMatch("album", clean(f"{by}\n{name}"), clean(name), sub))
    matches += [song_match(song) for song in results.songs]
    matches = [match for match in matches if match.kind in kinds]
    return matches + _word_matches(snapshot, text, matches) if "words" in kinds else matches


def _word_matches(snapshot: Snapshot, text: str, names: Sequence[TextMatch]) -> list[TextMatch]:
    """Return a match if `text` is understood as words, and one by sound if an extension ranks songs by texts.

    If names also match, all of the text must be understood.
    """
    words, sound = parse_words(snapshot, text), parse_sound(snapshot, text)
    by_sound = [] if sound is None else [_words_match(sound, "songs ranked by sound")]
    is_name = bool(names) and (words.unknown or all(part.filters.artists for part in words.parts))
    if not words.parts or is_name or words == sound:
        return by_sound
    sub = "songs that match these words"
    if words.unknown:
        sentences = (problem.sentence for problem in words.problems)
        sub += f"; not understood: {'; '.join(filter(None, [', '.join(words.strange), *sentences]))}"
    return [_words_match(words, sub), *by_sound]


def _words_match(words: Words, sub: str) -> TextMatch:
    return TextMatch("words", clean(words.known), clean(" · ".join(part.words for part in words.parts)), clean(sub))


def ids_of_match(snapshot: Snapshot, kind: MatchKind, value: str) -> Int64Array:
    """Return the ids of a match's songs, int64; for words, best matches first."""
    if kind == "artist":
        return snapshot.row_ids[snapshot.columns.artist.is_in([value])]
    if kind == "words":
        return snapshot.row_ids[find_matching_rows(snapshot, SearchRequest(words=parse_words(snapshot, value).known))]
    by, _, name = value.partition("\n")
    ids = snapshot.library.songs_of_album(name, by) if kind == "album" else [int(value)]
    return np.array([song.id for song in snapshot.songs_by_id(ids)], dtype=np.int64)


def name_matches(names: Sequence[str], text: str) -> list[TextMatch]:
    """Return at most twenty names that contain `text`, ignoring case; names that begin with it come first."""
    text = text.casefold()
    matching = [name for name in names if text in name.casefold()]
    matching.sort(key=lambda name: (not name.casefold().startswith(text), name))
    return [name_match(name) for name in matching[:_MAX_MATCHES]]


def song_match(song: Song) -> TextMatch:
    """Return a song as a match."""
    return TextMatch("song", str(song.id), clean(song.title), clean(song.byline))


def name_match(name: str) -> TextMatch:
    """Return a name from a list as a match."""
    return TextMatch("name", clean(name), clean(name))
