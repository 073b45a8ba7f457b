"""Find the folders with new, changed or missing files, without reading the files."""

import os
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from musicsim.addresses import is_address
from musicsim.library import Library, is_below
from musicsim.library.scan.files import Found, find_audio, remote_folders


class Changes(NamedTuple):
    folders: list[str]  # the library's folders and files that changed
    digest: str  # hash of the changes, which tells whether they were already tried


def find_changes(library: Library) -> Changes:
    """Compare the sizes and times of all files with the library; takes 1 kB per file.

    Addresses such as ``s3://…`` are left out, because listing them may cost money. A folder that does not exist is left
    out, because its drive may be unplugged; a scan would mark its songs as missing.
    """
    stored = {
        path: None if file.is_missing else (file.size, file.mtime_ns)
        for path, file in library.files.list_known().items()
    }
    stored |= {path: (size, mtime_ns) for path, (size, mtime_ns, *_) in library.files.list_failed().items()}
    remote = remote_folders(library.folder)
    folders: list[str] = []
    digest = blake2b(digest_size=16)
    for root in library.files.roots():
        if is_address(root) or not root.exists():
            continue
        found = find_audio([root], absent_ok=True)
        changed = [
            f"{file.path} {file.size} {file.mtime_ns}" for file in found.files if stored.get(file.path) != file[1:]
        ]
        changed += [f"{path} is gone" for path in _find_gone(root, found, stored, remote)]
        if changed:
            folders.append(os.fspath(root))
            digest.update("\0".join(sorted(changed)).encode("utf-8", "surrogateescape"))
    return Changes(folders, digest.hexdigest())


def _find_gone(root: Path, found: Found, stored: dict[Path, tuple[int, int] | None], remote: list[Path]) -> list[Path]:
    existing = {file.path for file in found.files}
    return [
        path
        for path, state in stored.items()
        if state is not None
        and path not in existing
        and is_below(path, root)
        and not found.unread(path)
        and not any(is_below(path, folder) for folder in remote)
    ]
