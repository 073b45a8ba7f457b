"""Plain spellings of names, which are the same on all services for the same recording.

"Help! (Live at Shea) [Remastered 2011]" is "help" in the version "live at shea".
"""

import re
from functools import lru_cache

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.library.tags.artists import artist_words, fold_name, strip_accents

# words in brackets or after a dash that indicate the same recording
_SAME = re.compile(
    r"(?:\d{4}\s+)?(?:digital(?:ly)?\s+)?re-?master(?:ed|izado|is[ée]e?)?\b.*|.*\bre-?master(?:ed)?(?:\s+\d{4})?"
    r"|(?:the\s+)?(?:original\s+)?(?:album|single|lp|ep|main|original|standard|explicit|clean|stereo|mono|full|long|short|extended|radio)"
    r"\s+(?:version|edit|mix|cut)|(?:radio|single|album)\s+edit|original|explicit|clean|mono|stereo"
    r"|(?:bonus|hidden)\s+track|deluxe.*|(?:official\s+)?(?:music\s+)?(?:video|audio)|official.*video|lyrics?(?:\s+video)?"
    r"|(?:19|20)\d\d(?:\s+(?:version|mix|edit))?|(?:\d+th\s+)?anniversary\b.*|from\s+.*|(?:feat|ft|featuring|with|con|avec|mit)\b.*"
)
# Words that indicate a different recording, by kind. Titles may also contain these words ("Paper Planes (Live Your
# Life)"), so they only count at the beginning or the end, or next to certain words.
_KINDS = {
    "live": re.compile(
        r"^(?:.*\s)?live$|^live\s+(?:at|in|from|on|version|recording|sessions?|take|bei|au|en|aus|im|@|\d).*"
        r"|\b(?:unplugged|en vivo|ao vivo|en directo|in concert)\b|\bsessions?$"
    ),
    "acoustic": re.compile(
        r"^(?:acoustic|acustico|akustik|stripped)\b|\b(?:acoustic|piano|stripped)\s+(?:version|mix)$"
    ),
    "demo": re.compile(
        r"^demo\b|\bdemo$|^take\s+\d+|\b(?:outtake|rehearsal)$|^(?:alternate|early)\s+(?:take|version|mix)"
    ),
    "instrumental": re.compile(r"^instrumental\b|\binstrumental$|\bkaraoke\b|^a\s?cappella\b|\bacapella\b"),
    "cover": re.compile(r"\b(?:cover|tribute)(?:\s+version)?$"),
    "remix": re.compile(r"\b(?:remix|rmx|mix|rework|bootleg|mashup|edit|dub|version|vip)(?:\s+(?:19|20)\d\d)?$"),
}
_BRACKETS = re.compile(r"[(\[{]([^()\[\]{}]*)[)\]}]")
_TAIL = re.compile(r"^(.*\S)\s+[-–—~]+\s+(.+?)\s*$")  # matches the last part of "Song - Live - Remastered"
_GUESTS = re.compile(r"\s+(?:feat|ft|featuring)\b\.?\s.*$")
_ARTICLE = re.compile(r"^(?:the|an?)\s+(?=\S)")
_AND = re.compile(r"[&+]")
_NO_LETTER = re.compile(r"[^\w'’`]|_")  # characters that are not letters, digits or apostrophes
_NO_APOSTROPHES = str.maketrans("", "", "'’`")
_MAX_STEPS = 12


def exact(artist: str, title: str) -> tuple[str, str]:
    """Return the artist and title with normalized case, width and spaces."""
    return fold_name(artist), fold_name(title)


@lru_cache(maxsize=1 << 16)
def plain_artist(name: str) -> str:
    """Return an artist's plain spelling, without spaces or guests. The function is idempotent."""
    text = name
    for _ in range(_MAX_STEPS):
        words = list(artist_words(text))
        if "feat" in words[1:]:
            words = words[: words.index("feat", 1)]
        plain = "".join(words) or fold_name(text)
        if plain == text:
            break
        text = plain
    return text


def plain_title(title: str) -> tuple[str, str, str]:
    """Return a title's plain spelling, its version in plain words, and the kind of the version ("" for none).

    An ending such as ".mp3" is left out, because programs use the file name as the title of a song without one.
    """
    name, dot, ending = title.rpartition(".")
    if name and f"{dot}{ending}".lower() in AUDIO_EXTENSIONS:
        title = name
    text, version, kind = strip_accents(" ".join(title.split())), "", ""
    for _ in range(_MAX_STEPS):
        plain, next_version, next_kind = _simplify(text)
        if plain == text:
            break
        text = plain
        version, kind = version or next_version, kind or next_kind
    return text, version, kind


def _simplify(text: str) -> tuple[str, str, str]:
    versions: list[tuple[str, str]] = []

    def drop(part: str, otherwise: str) -> str:
        part = part.strip()
        if not part or _SAME.fullmatch(part):
            return " "
        for kind, words in _KINDS.items():
            if words.search(part):
                versions.append((kind, _plain_words(part)))
                return " "
        return otherwise

    rest = _BRACKETS.sub(lambda match: drop(match[1], f" {match[1]} "), text)
    while (tail := _TAIL.match(rest)) and drop(tail[2], "") == " ":
        rest = tail[1]
    rest = _GUESTS.sub("", rest)
    plain = _ARTICLE.sub("", _plain_words(rest))
    if not plain:
        return _plain_words(text) or fold_name(text), "", ""
    kind, version = versions[0] if versions else ("", "")
    return plain, version, kind


def _plain_words(text: str) -> str:
    return " ".join(_NO_LETTER.sub(" ", _AND.sub(" and ", text)).translate(_NO_APOSTROPHES).split())
