"""Replace a music file atomically: a complete copy gets the file's name, so that each reader sees old or new bytes."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from musicsim import storage
from musicsim.audio import SAFE_OPTIONS, TAGS_MAY_BE_BROKEN
from musicsim.errors import LibraryError
from musicsim.extensions.tag_writing.backups import Backups, name_temporary, sync_folder
from musicsim.extensions.tag_writing.plan import Target, check_permissions
from musicsim.library import Library, enter_rewritten


def replace_file(library: Library, backups: Backups, target: Target, backup: Path, make: Callable[[Path], str]) -> None:
    """Replace a file by the one that ``make(temporary)`` writes, and enter its hash, the result, in the library.

    Mode, owner and extended attributes stay. The modification time is the current one, so that backup programs and
    music servers notice the change. `backup` is the file with its backup. Raises LibraryError if the file cannot be
    replaced or changes in the meantime, and StorageError if the disk is full.
    """
    file = target.file
    check_permissions(file)
    temporary = name_temporary(file)
    with backups.change(temporary, backup), _explain_errors(file):
        before = file.stat()
        digest = make(temporary)
        shutil.copystat(file, temporary)
        with suppress(OSError, AttributeError):  # of another group, or a system without owners
            os.chown(temporary, before.st_uid, before.st_gid)
        os.utime(temporary)
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        after = file.stat()
        if (before.st_size, before.st_mtime_ns, before.st_ino) != (after.st_size, after.st_mtime_ns, after.st_ino):
            raise LibraryError(f"{file} was changed by another program in the meantime. Scan its folder again.")
        temporary.replace(file)
        sync_folder(file.parent)
        for path in target.paths:
            enter_rewritten(library, target.song_id, path, digest)


@contextmanager
def _explain_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and (problem := storage.storage_error(error, file)) is not None:
            raise problem from error
        raise LibraryError(
            f"{file} cannot be replaced ({error.strerror}). Check its permissions and its disk."
        ) from error


def hash_sound(path: Path) -> str:
    """Return a hash of the encoded sound without the tags. Raises LibraryError if FFmpeg cannot read the file."""
    import av

    digest = hashlib.blake2b(digest_size=16)
    try:
        with av.open(str(path), options=SAFE_OPTIONS, **TAGS_MAY_BE_BROKEN) as container:
            for packet in container.demux(container.streams.audio[0]):
                digest.update(bytes(packet))
    except (av.FFmpegError, IndexError, ValueError) as error:
        raise LibraryError(f"{path}: FFmpeg cannot check the sound ({error}), so its tags are not written.") from error
    return digest.hexdigest()
