"""Covers: small pictures of songs, from their files' tags or an image in their folders.

Pictures are untrusted: worker processes decode them after their sizes are checked. Invalid pictures are ignored.
"""

import base64
import itertools
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from stat import S_ISREG
from typing import Any

from musicsim.errors import AudioError, StorageError
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.disk.room import make_room
from musicsim.library.library import Library
from musicsim.library.processes.decoding import Decoder, Decoding, Run
from musicsim.library.processes.workers import Limits
from musicsim.library.stores.songs import Song
from musicsim.library.tags.file_tags import FrugalFile, file_chunks, open_container, read_id3v2
from musicsim.public import working_folder

_log = logging.getLogger(__name__)
_VERSION = 1  # version of the generated pictures
_SIDE = 320  # pixels
_QUALITY = 85
_MAX_IMAGE_BYTES = 16 << 20
_MAX_PIXELS = 36_000_000  # a decoded picture of this size takes 144 MB
LIMITS = Limits(seconds=20.0, memory_mb=1024)  # limits for one cover
_KINDS = ("JPEG", "PNG", "WEBP", "GIF")
_FRONT = 3  # the picture type of a front cover, in every format
_FRAMES = frozenset((b"APIC", b"PIC"))
_IMAGE = re.compile(r"(cover|folder|front)\.(jpe?g|png)", re.IGNORECASE)
_MAX_CACHE_BYTES = 128 << 20
CHECK_INTERVAL = 64  # number of new pictures between checks of the cache's size; each check lists all files
_CACHED = re.compile(r"[0-9a-f]{32}\.jpg")


class Covers:
    """Song covers, made by workers and cached in ``cache/covers``; the least recently used ones are deleted."""

    def __init__(self, decoder: Decoder, max_bytes: int = _MAX_CACHE_BYTES) -> None:
        self._decoder, self._max_bytes = decoder, max_bytes
        self._counter = itertools.count()

    def tag_of(self, song: Song) -> str | None:
        """Return an ETag that changes with the song's file or the image in its folder; None if the file is missing."""
        try:
            image = _folder_image(song.path)
            paths = [song.path, *([image] if image else [])]
            stats = [(str(path), stat.st_mtime_ns, stat.st_size) for path in paths for stat in [path.stat()]]
        except OSError:
            return None
        return blake2b(repr((_VERSION, stats)).encode("utf-8", "replace"), digest_size=16).hexdigest()

    def cover_of(self, library: Library, song: Song, tag: str) -> bytes | Decoding[bytes]:
        """Return the cover as a JPEG of at most 320 x 320 pixels, or the task that is making it; b"" if there is none.

        The task raises AudioError if it takes too long or the file cannot be read. `tag` comes from :meth:`tag_of`.
        """
        target = working_folder(library.folder) / "cache" / "covers" / f"{tag}.jpg"
        with suppress(OSError):
            data = target.read_bytes()
            with suppress(OSError):  # the library is read-only
                os.utime(target)
            return data
        # urgent: it takes milliseconds, and the page shows a placeholder until then
        work = partial(self._make, path=song.path, target=target)
        return self._decoder.ask(work, name=str(song.path), limits=LIMITS, is_urgent=True)

    def _make(self, run: Run, path: Path, target: Path) -> bytes:
        data: bytes = run(make_cover, path)
        with suppress(StorageError, OSError):
            with atomic_path(target) as temporary:
                temporary.write_bytes(data)
            if next(self._counter) % CHECK_INTERVAL == 0:
                make_room(target.parent, _CACHED, 0, self._max_bytes)
        return data


def make_cover(path: Path) -> bytes:
    """Return the cover of an audio file, or b"" if it has none. Raises AudioError if the file cannot be read."""
    try:
        return next(filter(None, map(thumbnail, _pictures(path))), b"")
    except OSError as error:
        raise AudioError(f"{path}: cannot be read ({error.strerror or error}).") from error


def thumbnail(image: bytes) -> bytes:
    """Return a small JPEG of an image file; b"" if the image is invalid or too large."""
    from PIL import Image, ImageOps

    if not 0 < len(image) <= _MAX_IMAGE_BYTES:
        return b""
    try:
        with Image.open(BytesIO(image), formats=_KINDS) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return b""
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # decode a JPEG at a reduced size
            picture = ImageOps.exif_transpose(opened).convert("RGB")
        picture.thumbnail((_SIDE, _SIDE))
        out = BytesIO()
        picture.save(out, "JPEG", quality=_QUALITY, optimize=True)
    except Exception as error:
        # Pillow's decoders raise many kinds of errors: syntax, struct, zlib and memory errors, and warnings
        _log.debug("an image cannot be decoded (%s).", error)
        return b""
    return out.getvalue()


def _pictures(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        for read in (_read_container, _read_id3v2, _read_chunk):
            raw.seek(0)
            try:
                picture = read(FrugalFile(raw))
            except Exception as error:  # mutagen raises many kinds of errors for hostile files
                _log.debug("%s: %s failed (%s).", path, read.__name__, error)
                continue
            if picture:
                yield picture
    image = _folder_image(path)
    if image is not None and image.stat().st_size <= _MAX_IMAGE_BYTES:
        yield image.read_bytes()


def _read_container(file: FrugalFile) -> bytes | None:
    from mutagen.flac import Picture

    audio = open_container(file)
    if audio is None or audio.tags is None:
        return None
    covers = audio.tags.get("covr") or ()
    if covers:
        return bytes(covers[0])
    packed = audio.tags.get("metadata_block_picture") or ()
    return _front([*getattr(audio, "pictures", ()), *(Picture(base64.b64decode(text)) for text in packed)])


def _read_id3v2(file: FrugalFile) -> bytes | None:
    tag = read_id3v2(file, _FRAMES, _MAX_IMAGE_BYTES)
    return None if tag is None else _front(list(tag.values()))


def _read_chunk(file: FrugalFile) -> bytes | None:
    head = file.read(4)
    if head in (b"RIFF", b"FORM"):
        for name, _, _ in file_chunks(file, "<" if head == b"RIFF" else ">", 12, None):
            if name.lower() == b"id3 ":
                return _read_id3v2(file)
    return None


def _front(pictures: Sequence[Any]) -> bytes | None:
    return min(pictures, key=lambda picture: picture.type != _FRONT).data if pictures else None


def _folder_image(path: Path) -> Path | None:
    return _image_in(path.parent, path.parent.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _image_in(folder: Path, changed_ns: int) -> Path | None:
    """Return the image called ``cover``, ``folder`` or ``front``, in this order; cached until the folder changes."""
    names = sorted((e.name for e in os.scandir(folder) if _IMAGE.fullmatch(e.name)), key=str.lower)
    return next((folder / name for name in names if S_ISREG((folder / name).stat().st_mode)), None)
