"""Identity of artists: placeholder names, songs without an artist, and different spellings.

More than half of real-world files have no artist or a placeholder, so half of a library would look like one artist.
Therefore, the song's folder replaces an unknown artist. If the folder is generic, too, the song forms its own group.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePath

# Placeholders in many languages that music programs use. Only letters and digits are compared, so "<Unknown>", "V.A."
# and "n/a" also match.
_PLACEHOLDERS = """
    unknown, unknown artist, unknown artists, unknown performer, various, various artist, various artists,
    various performers, va, v/a, vv.aa., n/a, artist, track artist, album artist, no artist, artist unknown, none,
    null, undefined, unbekannt, unbekannter künstler, unbekannter interpret, interpret unbekannt, künstler unbekannt,
    verschiedene, verschiedene interpreten, verschiedene künstler, diverse, diverse interpreten, diverse künstler,
    interpret, künstler, onbekend, onbekende artiest, diverse artiesten, verschillende artiesten, okänd, okänd artist,
    blandade artister, diverse artister, ukendt, ukendt kunstner, diverse kunstnere, ukjent, ukjent artist, tuntematon,
    tuntematon esittäjä, tuntematon artisti, eri esittäjiä, inconnu, artiste inconnu, interprète inconnu,
    artistes divers, divers, artistes variés, multi interprètes, artiste, desconocido, artista desconocido,
    intérprete desconocido, varios, varios artistas, varios intérpretes, artistas varios, artista, desconhecido,
    artista desconhecido, intérprete desconhecido, vários, vários artistas, vários intérpretes, sconosciuto,
    artista sconosciuto, artisti vari, vari, vari artisti, aa.vv., autori vari, interpreti vari, necunoscut,
    artist necunoscut, diverși artiști, неизвестен, неизвестный, неизвестный исполнитель, неизвестный артист,
    неизвестно, исполнитель неизвестен, исполнитель, разные, разные исполнители, разные артисты, различные исполнители,
    сборник, невідомий, невідомий виконавець, різні виконавці, nieznany, nieznany wykonawca, nieznany artysta, różni,
    różni wykonawcy, różni artyści, neznámý, neznámý interpret, neznámý umělec, různí, různí interpreti, různí umělci,
    ismeretlen, ismeretlen előadó, különböző előadók, bilinmeyen, bilinmeyen sanatçı, çeşitli sanatçılar, άγνωστος,
    άγνωστος καλλιτέχνης, διάφοροι, διάφοροι καλλιτέχνες, 不明, 不明なアーティスト, アーティスト不明,
    ヴァリアス・アーティスト, ヴァリアス, オムニバス, 未知, 未知艺术家, 未知藝術家, 未知歌手, 未知艺人, 未知藝人, 群星,
    合辑, 华语群星, 알 수 없음, 알 수 없는 아티스트, 여러 아티스트, 다양한 아티스트
"""

# Folder names that describe an origin or a kind of file, not an artist. They are compared without digits, so "New
# Folder (2)" matches. Years and single letters also count as generic.
_GENERIC_FOLDERS = """
    music, musik, musique, música, musica, muziek, muzyka, музыка, 音乐, 音樂, 音楽, my music, meine musik, ma musique,
    mi música, моя музыка, songs, song, tracks, audio, snd, sound, sounds, singles, albums, album, alben, loose,
    loose tracks, loose songs, mp3, mp3s, mp 3, flac, flacs, wav, wave, wavs, ogg, opus, m4a, aac, wma, aiff, ape,
    alac, lossless, lossy, download, downloads, downloaded, téléchargements, descargas, scaricati, загрузки, 下载,
    upload, uploads, uploaded, incoming, inbox, temp, tmp, misc, miscellaneous, verschiedenes, sonstiges, divers,
    разное, other, others, unsorted, to sort, sort, new, new folder, neuer ordner, nouveau dossier, nueva carpeta,
    nova pasta, nuova cartella, новая папка, 新建文件夹, 新しいフォルダー, untitled, untitled folder, unnamed,
    unknown album, unbekanntes album, album inconnu, álbum desconocido, álbum desconhecido, album sconosciuto,
    неизвестный альбом, 未知专辑, 不明なアルバム, compilation, compilations, soundtrack, soundtracks, mix, mixes,
    playlist, playlists, favourites, favorites, itunes, itunes media, itunes music, amazon music, spotify, youtube,
    soundcloud, bandcamp, telegram, whatsapp audio, media, multimedia, documents, desktop, home, data, files, shared,
    public, share, backup, recordings, aufnahmen, voice memos, recorded, rips, ripped, cd, cds, dvd, vinyl, disc, disk,
    bonus, bonus tracks, bonus cd, bonus disc
"""
_SHELF = re.compile(r"\W*(?:[a-zа-я]?|[a-zа-я0-9]\W+[a-zа-я0-9]|[\d\W]+s?)\W*", re.IGNORECASE)  # "A", "0-9", "1980s"
_VARIOUS = re.compile(r"various\b|v\.?a\.?\s*[-–_]", re.IGNORECASE)
_UNKNOWN_ALBUM = ("unknownalbum", "unknownartist", "variousartists")  # "Unknown Album (3-12-2011 10-04 PM)"

_DISC = re.compile(
    r"[\W_]*(?:cd|dis[ck]|disque|disco|dvd|диск|schijf|platte|side)"
    r"(?:[\s._#-]*\d{1,2}(?!\d)|[\s._#-]+(?:one|two|three|four|five|six|[ivx]+|[a-d])\b)(?!\w).*",
    re.IGNORECASE | re.DOTALL,
)

_ACCENTS = re.compile("[\u0300-\u036f]")
# letters that NFKD does not decompose
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"}
)
_SAME_WORDS = {"n": "and", "ft": "feat", "featuring": "feat", "versus": "vs"}
_ARTICLE_BEHIND = re.compile(r"(.+),\s*(the|a|an|die|der|das|le|la|les|los|las|el|il|i|gli)\W*", re.DOTALL)
_SHORTEST_TYPO = 8  # minimum number of letters in a name with a typo
_SHORTEST_WORD = 5  # minimum number of letters in a word with a typo: "Jon" and "John" are two names
_MAX_COMPARED = 16  # maximum number of names that differ in one letter; more are a series, not errors


def parse_artist(name: str | None) -> str | None:
    """Return a name on one line, or None for a placeholder ("Unknown Artist", "VA", "-", "???"), in any spelling."""
    shown = " ".join((name or "").split())
    letters = _letters(shown)
    if letters:
        return None if letters in _NOBODY else shown
    return shown if shown.strip(" -–—―_.?¿*\ufffd/\\<>[](){}'\"") else None


def artist_group(artist: str | None, folder: Path, roots: Iterable[Path]) -> str | None:
    """Return the key that songs by the same artist share, for artist limits, spacing, colors and splits.

    The key is the artist's normalized name. For None and placeholders, it is ``"folder:<path>"``, or None if the song's
    folder is generic.
    """
    known = parse_artist(artist)
    if known is not None:
        return fold_name(known)
    own = _artist_folder(folder, roots)
    return None if own is None else f"folder:{own}"


def stand_in_name(folder: Path, roots: Iterable[Path]) -> str | None:
    """Return the name of the folder to show for an unknown artist; None if it is generic."""
    own = _artist_folder(folder, roots)
    return None if own is None else own.name.encode("utf-8", "replace").decode()


def similar_spellings(counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return groups of spellings that very likely mean the same artist, given the number of songs per name.

    Names are compared without case, accents, punctuation, spaces and "The" at either end. One typo is allowed if both
    names have at least eight letters and the same digits, and the misspelled word has at least five letters. A name
    joins a more frequent name that has not joined another, so that errors do not accumulate. This takes linear time.
    """
    spellings: dict[str, list[str]] = defaultdict(list)
    words: dict[str, tuple[str, ...]] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        if parse_artist(name) is not None:
            split = artist_words(name)
            key = "".join(split) or fold_name(name)  # the name consists of symbols
            spellings[key].append(name)
            words.setdefault(key, split)
    used = {key: sum(counts[name] for name in names) for key, names in spellings.items()}
    by_use = sorted(used, key=lambda key: (-used[key], key))
    joined = _join_typos({key: words[key] for key in by_use})
    groups: dict[str, list[str]] = defaultdict(list)
    for key, hub in joined.items():
        groups[hub] += spellings[key]
    return spelling_groups(groups.values(), counts)


def spelling_groups(groups: Iterable[Iterable[str]], counts: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return groups with at least two names; groups and names are sorted by use, the most used first."""
    ordered = (tuple(sorted(group, key=lambda name: (-counts[name], name))) for group in groups)
    result = [names for names in ordered if len(names) > 1]
    return sorted(result, key=lambda names: (-sum(counts[name] for name in names), names))


def _letters(text: str) -> str:
    return "".join(c for c in strip_accents(text) if c.isalnum())


def strip_accents(text: str) -> str:
    """Return text in lower case, without the accents on European letters; keep vowel signs in other scripts."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    text = _ACCENTS.sub("", text).translate(_PLAIN_LETTERS)
    # composed again, so that a Korean syllable counts as one letter
    return unicodedata.normalize("NFC", text)


def fold_name(text: str) -> str:
    """Return a name with normalized case, width and spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(unicodedata.normalize("NFKC", text.casefold()).split())


_NOBODY = frozenset(map(_letters, _PLACEHOLDERS.split(",")))


def _strip_digits(text: str) -> str:
    return re.sub(r"\d", "", _letters(text))


_GENERIC = frozenset(map(_strip_digits, _GENERIC_FOLDERS.split(",")))


def _artist_folder(folder: PurePath, roots: Iterable[PurePath]) -> PurePath | None:
    """Return the folder, or the parent of a disc folder; None if it is generic."""
    above = _up_to(tuple(roots))
    while folder.name and str(folder) not in above:
        if not _DISC.fullmatch(folder.name):
            return None if is_generic_folder(folder.name) else folder
        folder = folder.parent
    return None


@lru_cache(maxsize=16)
def _up_to(roots: tuple[PurePath, ...]) -> frozenset[str]:
    return frozenset(str(folder) for root in roots for folder in (root, *root.parents))


@lru_cache(maxsize=1 << 14)
def is_generic_folder(name: str) -> bool:
    """Return whether a folder's name describes an origin or a kind of file, such as "music", "CD 2" or "1980s"."""
    letters = _strip_digits(name)
    return (
        letters in _GENERIC
        or parse_artist(name) is None
        or _SHELF.fullmatch(name) is not None
        or _VARIOUS.match(name) is not None
        or letters.startswith(_UNKNOWN_ALBUM)
    )


def artist_words(name: str) -> tuple[str, ...]:
    """Return the distinctive words in a name, in lower case and without accents or punctuation."""
    text = strip_accents(" ".join(name.split()))
    if match := _ARTICLE_BEHIND.fullmatch(text):
        text = f"{match[2]} {match[1]}"
    text = re.sub(r"(?<=\w)\$(?=\w)", "s", re.sub(r"(?<=\w)!(?=\w)", "i", text))  # Ke$ha, P!nk
    parts = re.sub(r"[&+]", " and ", text).split()
    words = [word for part in parts if (word := _strip_signs(part))]
    last = len(words) - 1
    words = [_SAME_WORDS.get(word, word) if 0 < i < last else word for i, word in enumerate(words)]
    return tuple(words[1:] if words[0:1] == ["the"] and last > 0 else words)


def _strip_signs(text: str) -> str:
    # vowel signs in Indian and other scripts are marks, and are distinctive
    return text if text.isalnum() else "".join(c for c in text if unicodedata.category(c)[0] in "LNM")


def _join_typos(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map each key to the first key that it misspells, or to itself; `words` is sorted by use, most used first."""
    joined: dict[str, str] = {}
    # indices of keys that joined no other key, keyed by their digits and their variants with one letter removed
    table: dict[tuple[str, str], list[int]] = defaultdict(list)
    keys = list(words)
    for i, key in enumerate(keys):
        joined[key] = key
        digits = re.sub(r"\D", "", key)
        if len(key) - len(digits) < _SHORTEST_TYPO:
            continue
        shorter = {key[:k] + key[k + 1 :] for k, letter in enumerate(key) if not letter.isdecimal()}
        cells = [(digits, variant) for variant in (key, *shorter)]
        near = {other for cell in cells for other in table.get(cell, ())}
        hub = next((keys[k] for k in sorted(near) if _is_one_typo(words[key], words[keys[k]])), None)
        if hub is not None:
            joined[key] = hub
            continue
        for cell in cells:
            if len(table[cell]) < _MAX_COMPARED:
                table[cell].append(i)
    return joined


def _is_one_typo(a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether two names, given as words, differ by one typo, and not by a whole word."""
    from rapidfuzz.distance import OSA

    whole_a, whole_b = "".join(a), "".join(b)
    if OSA.distance(whole_a, whole_b, score_cutoff=1) != 1:
        return False
    if len(a) != len(b):
        longer, shorter = (a, whole_b) if len(a) > len(b) else (b, whole_a)
        return all("".join((*longer[:i], *longer[i + 1 :])) != shorter for i in range(len(longer)))
    different = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    if len(different) != 1:
        return True  # the typo moves a space
    x, y = different[0]
    is_swap = sorted(x) == sorted(y)
    return is_swap or (max(len(x), len(y)) >= _SHORTEST_WORD and x[0] == y[0])
