"""Names of folders for people: the album, or the folder's name with as many parents as are needed.

A folder with the songs of one album has the album's name. Otherwise, a folder has its own name. If that name is
generic, such as "music", the folder has the name of its parent. Folders that would have the same name also get the
names of their parents. Folders of the same album in the same parent, such as discs, share a name.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from musicsim.library.tags.artists import is_generic_folder

_SEPARATOR = " / "
# "Music.ocg" and "Nevermind.flac" look like files. Artists such as "Dr.Dre" and "will.i.am" keep their names.
_SUFFIX = re.compile(r"(?<=\w\w)\.(?:[a-z][a-z\d]{2}|aiff|flac|opus)$")
# folders of games, in addition to those that cannot replace an artist
_PARTS_OF_GAMES = frozenset(
    (
        "ambient",
        "bgm",
        "default",
        "environment",
        "ingame",
        "menu",
        "ost",
        "sfx",
        "themes",
        "titles",
        "tunes",
        "tutorial",
    )
)


def name_folders(folders: Sequence[str], albums: Mapping[str, str]) -> list[str]:
    """Return a name per folder path; `albums` has the album of each folder that contains one album."""
    keys = [_key_of(folder, albums.get(folder)) for folder in folders]
    waiting: dict[tuple[str, str], Iterator[str]] = {}
    for key, folder in zip(keys, folders, strict=True):
        waiting.setdefault(key, _proposals(folder, albums.get(folder)))
    names = {key: next(proposals) for key, proposals in waiting.items()}
    while True:
        counts = Counter(names.values())
        longer = {key: name for key in names if counts[names[key]] > 1 and (name := next(waiting[key], None))}
        if not longer:
            return [names[key] for key in keys]
        names |= longer


def _key_of(folder: str, album: str | None) -> tuple[str, str]:
    return (folder, "") if album is None else (str(PurePath(folder).parent), album.casefold())


def _proposals(folder: str, album: str | None) -> Iterator[str]:
    """Yield names from short to long; each one belongs to fewer folders."""
    path = PurePath(folder)
    parts = [_SUFFIX.sub("", part) for part in path.parts]
    if path.anchor and len(parts) > 1:
        del parts[0]
    if album is not None:
        yield album
        parts[-1:] = [album]
    elif len(parts) > 1 and _is_plain(parts[-1]):
        if not _is_plain(parts[-2]):
            yield parts[-2]
    else:
        yield parts[-1] if parts else folder
    for n in range(2, len(parts) + 1):
        yield _SEPARATOR.join(parts[-n:])


def _is_plain(name: str) -> bool:
    return name.casefold() in _PARTS_OF_GAMES or is_generic_folder(name)
