"""Reading the lyrics of songs: from the tags of a file, else from a ``.lrc`` file of the same name beside it."""

import logging
import re
import stat
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from musicsim.extensions.lyrics.store import LRC_ENDINGS, LyricsStore, ReadWords
from musicsim.library.library import Library
from musicsim.library.tags.file_tags import read_lyric_tags

_log = logging.getLogger(__name__)
_MAX_WORDS = 2_000  # distinct ones of a song
_MAX_WORD = 40  # letters; what is longer is no word but a mistake
_MAX_TEXT = 1 << 20  # characters of one text that are looked at
_MAX_LRC = 1 << 20  # bytes
_BATCH, _BATCH_S = 256, 2.0  # songs of one transaction, and seconds after which it is written all the same

# "[00:12.34]" before a line, "<00:12.34>" before a word
_TIME = re.compile(r"[\[<]\d{1,4}:\d{1,2}(?:[.:]\d{1,3})?[\]>]")
# "[ar: Name]", and headings such as "[Verse 1: Name]": nobody sings them
_HEADING = re.compile(r"^[ \t]*\[[^\]\n]*\][ \t]*$", re.MULTILINE)


def read_lyrics(library: Library, progress: Callable[[str, int, int], object] | None = None) -> int:
    """Bring the words of a library's songs up to their files; how many were looked at.

    `progress` takes a message, how many songs are done, and of how many, with every batch; what it raises ends the
    work, and all that was reported as done is kept.
    A file that cannot be reached now is left for the next time.
    """
    store = LyricsStore(library)
    songs = store.unread()
    batch: list[ReadWords] = []
    n_read, since = 0, time.monotonic()
    for done, song in enumerate(songs):
        if progress is not None and not batch:
            progress("looking for lyrics", done, len(songs))
        if song.path.is_file():
            batch.append(ReadWords(song, read_words(song.path)))
        if len(batch) >= _BATCH or time.monotonic() - since > _BATCH_S:
            store.put(batch)
            n_read += len(batch)
            batch, since = [], time.monotonic()
    store.put(batch)
    if progress is not None:
        progress("looking for lyrics", len(songs), len(songs))
    return n_read + len(batch)


def read_words(path: Path) -> dict[str, int]:
    """How often the lyrics of an audio file say each word, as :func:`count_words` has it.

    Of several texts in one file the first that says something: plain before timed, tags before the ``.lrc`` file.
    Empty where there is none, and where the file cannot be read.
    """
    for text in read_lyric_tags(path):
        if words := count_words(text):
            return words
    return count_words(_lrc_text(path))


def _lrc_text(path: Path) -> str:
    """The ``.lrc`` file beside an audio file; nothing where there is none, or it is no text of sensible size."""
    for ending in LRC_ENDINGS:
        lrc = path.with_suffix(ending)
        try:
            found = lrc.stat()
            if stat.S_ISREG(found.st_mode) and found.st_size <= _MAX_LRC:  # a pipe would wait for a writer
                return lrc.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            _log.debug("%s: cannot be read (%s).", lrc, error)
    return ""


def count_words(text: str) -> dict[str, int]:
    """Count the words of lyrics: the most frequent ones, at most 2,000.

    Of LRC, time stamps and lines in square brackets (headings, metadata) are left out. A word is a run of letters and
    their marks (Unicode, NFKC, lower case) of at most 40; languages without spaces have whole lines for words.
    """
    text = text[:_MAX_TEXT].replace("\r", "\n")
    text = _HEADING.sub("", _TIME.sub(" ", text))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    # marks are part of a letter, and formats (joiners, soft hyphens) part of nothing
    other = {ord(c): "" if kind == "Cf" else " " for c in set(text) if (kind := unicodedata.category(c))[0] not in "LM"}
    words = (word for word in text.translate(other).split() if len(word) <= _MAX_WORD)
    return dict(Counter(words).most_common(_MAX_WORDS))
