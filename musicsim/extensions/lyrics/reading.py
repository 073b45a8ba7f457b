"""Lyrics from the tags of a file, or from an ``.lrc`` file with the same name next to it."""

import logging
import re
import stat
import time
import unicodedata
from collections import Counter
from pathlib import Path

from musicsim._arrays import Int64Array
from musicsim.extensions.lyrics.store import LRC_ENDINGS, LyricsStore, LyricTable, UnreadSong
from musicsim.library import Library, read_lyric_tags
from musicsim.progress import Progress, no_progress

_log = logging.getLogger(__name__)
_MAX_WORDS = 2_000  # maximum number of distinct words per song
_MAX_WORD = 40  # maximum number of letters; anything longer is not a word
_MAX_TEXT = 1 << 20  # maximum number of characters in the lyrics of a song
_MAX_LRC = 1 << 20  # bytes
BATCH, _BATCH_S = 256, 2.0  # maximum number of songs and seconds per transaction

# "[00:12.34]" before a line, "<00:12.34>" before a word
_TIME = re.compile(r"[\[<]\d{1,4}:\d{1,2}(?:[.:]\d{1,3})?[\]>]")
# "[ar: Name]", and headings such as "[Verse 1: Name]", which are not sung
_HEADING = re.compile(r"^[ \t]*\[[^\]\n]*\][ \t]*$", re.MULTILINE)


def read_lyrics(library: Library, progress: Progress = no_progress) -> int:
    """Read the lyrics of new and changed files; return the number of songs that were read."""
    store = LyricsStore(library)
    songs = store.unread()
    batch: list[tuple[UnreadSong, dict[str, int]]] = []
    n_read, since = 0, time.monotonic()
    for n_done, song in enumerate(songs):
        if not batch:
            progress("reading lyrics", n_done, len(songs))
        if song.path.is_file():
            batch.append((song, read_words(song.path)))
        if len(batch) >= BATCH or time.monotonic() - since > _BATCH_S:
            store.put(batch)
            n_read += len(batch)
            batch, since = [], time.monotonic()
    store.put(batch)
    progress("reading lyrics", len(songs), len(songs))
    return n_read + len(batch)


def read_words(path: Path) -> dict[str, int]:
    """Count the words in a file's plain lyrics; without them, use its timed lyrics, then its ``.lrc`` file."""
    for text in read_lyric_tags(path):
        if words := count_words(text):
            return words
    return count_words(_lrc_text(path))


def _lrc_text(path: Path) -> str:
    """Return the text of the ``.lrc`` file next to an audio file; empty if it is missing, too large or not text."""
    for ending in LRC_ENDINGS:
        lrc = path.with_suffix(ending)
        try:
            status = lrc.stat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_LRC:  # reading a pipe would block
                return lrc.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            _log.debug("%s: cannot be read (%s).", lrc, error)
    return ""


def count_words(text: str) -> dict[str, int]:
    """Count the 2,000 most frequent words of lyrics; timestamps and lines in square brackets are ignored."""
    text = text[:_MAX_TEXT].replace("\r", "\n")
    text = _HEADING.sub("", _TIME.sub(" ", text))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    # combining marks belong to words; format characters (joiners, soft hyphens) are removed
    other = {ord(c): "" if kind == "Cf" else " " for c in set(text) if (kind := unicodedata.category(c))[0] not in "LM"}
    words = (word for word in text.translate(other).split() if len(word) <= _MAX_WORD)
    return dict(Counter(words).most_common(_MAX_WORDS))


read = read_lyrics  # name required by the hook `song_words`


def table(library: Library) -> LyricTable:
    """Return the words of all songs, without rare and very common words."""
    return LyricsStore(library).table()


def find_songs(library: Library, word: str) -> tuple[str, Int64Array] | None:
    """Find the songs whose lyrics contain a word; return a description of the filter and the song ids, or None."""
    ids = LyricsStore(library).songs_saying(word)
    return (f"lyrics with “{word}”", ids) if len(ids) else None
