"""Covers: small pictures of songs, from the tags of their files or an image in their folders, made once.

A picture may be anything: worker processes read and decode it, sizes are looked at before bytes are read and pixels
are decoded, and what is no picture after all counts as none.
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
_VERSION = 1  # of the pictures that are made
_SIDE = 320  # pixels
_QUALITY = 85
_MAX_IMAGE_BYTES = 16 << 20
_MAX_PIXELS = 36_000_000  # a decoded picture of 144 MB
_LIMITS = Limits(seconds=20.0, memory_mb=1024)  # of a worker that makes one cover
_KINDS = ("JPEG", "PNG", "WEBP", "GIF")
_FRONT = 3  # the picture type of a front cover, in every format
_FRAMES = frozenset((b"APIC", b"PIC"))
_IMAGE = re.compile(r"(cover|folder|front)\.(jpe?g|png)", re.IGNORECASE)
_MAX_CACHE_BYTES = 128 << 20
_LOOKED_EVERY = 64  # pictures: to look how large the cache is, all of it is listed
_CACHED = re.compile(r"[0-9a-f]{32}\.jpg")


class Covers:
    """Covers of songs, kept in the folder ``cache/covers`` of their library, each made in a worker.

    Those not seen for longest make room, as soon as all covers together take more than `max_bytes`.
    """

    def __init__(self, decoder: Decoder, max_bytes: int = _MAX_CACHE_BYTES) -> None:
        self._decoder, self._max_bytes = decoder, max_bytes
        self._made = itertools.count()

    def tag_of(self, song: Song) -> str | None:
        """What names the cover of a song as its file and folder are now; None without a file."""
        try:
            beside = _image_beside(song.path)
            paths = [song.path, *([beside] if beside else [])]
            stats = [(str(path), stat.st_mtime_ns, stat.st_size) for path in paths for stat in [path.stat()]]
        except OSError:
            return None
        return blake2b(repr((_VERSION, stats)).encode("utf-8", "replace"), digest_size=16).hexdigest()

    def cover_of(self, library: Library, song: Song, tag: str) -> bytes | Decoding[bytes]:
        """The cover as a JPEG file of at most 320 x 320 pixels, or work that makes it; empty if there is none.

        The work ends with an AudioError if it takes too long or the file cannot be read; that is not kept. `tag` is of
        :meth:`tag_of`.
        """
        target = working_folder(library.folder) / "cache" / "covers" / f"{tag}.jpg"
        with suppress(OSError):
            data = target.read_bytes()
            with suppress(OSError):  # a library that cannot be written to
                os.utime(target)
            return data
        # urgent: it takes milliseconds, and a page shows its place
        work = partial(self._make, path=song.path, target=target)
        return self._decoder.ask(work, name=str(song.path), limits=_LIMITS, is_urgent=True)

    def _make(self, run: Run, path: Path, target: Path) -> bytes:
        data: bytes = run(make_cover, path)
        with suppress(StorageError, OSError):
            with atomic_path(target) as temporary:
                temporary.write_bytes(data)
            if next(self._made) % _LOOKED_EVERY == 0:
                make_room(target.parent, _CACHED, 0, self._max_bytes)
        return data


def make_cover(path: Path) -> bytes:
    """The cover of an audio file, made in this process; empty without one.

    Raises AudioError if the file cannot be read.
    """
    try:
        return next(filter(None, map(thumbnail, _pictures(path))), b"")
    except OSError as error:
        raise AudioError(f"{path}: cannot be read ({error.strerror or error}).") from error


def thumbnail(image: bytes) -> bytes:
    """A small JPEG file of an image file; empty where it is none, or too large to be looked at."""
    from PIL import Image, ImageOps

    if not 0 < len(image) <= _MAX_IMAGE_BYTES:
        return b""
    try:
        with Image.open(BytesIO(image), formats=_KINDS) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return b""
            opened.draft("RGB", (2 * _SIDE, 2 * _SIDE))  # JPEG is decoded no larger than needed
            picture = ImageOps.exif_transpose(opened).convert("RGB")
        picture.thumbnail((_SIDE, _SIDE))
        out = BytesIO()
        picture.save(out, "JPEG", quality=_QUALITY, optimize=True)
    except Exception as error:
        # Pillow raises whatever its decoders meet: syntax, struct, zlib and memory errors, warnings of bombs
        _log.debug("an image cannot be decoded (%s).", error)
        return b""
    return out.getvalue()


def _pictures(path: Path) -> Iterator[bytes]:
    with path.open("rb") as raw:
        for read in (_of_container, _of_id3v2, _of_chunk):
            raw.seek(0)
            try:
                found = read(FrugalFile(raw))
            except Exception as error:  # mutagen raises anything on hostile files
                _log.debug("%s: %s found no picture (%s).", path, read.__name__[1:], error)
                continue
            if found:
                yield found
    beside = _image_beside(path)
    if beside is not None and beside.stat().st_size <= _MAX_IMAGE_BYTES:
        yield beside.read_bytes()


def _of_container(file: FrugalFile) -> bytes | None:
    from mutagen.flac import Picture

    audio = open_container(file)
    if audio is None or audio.tags is None:
        return None
    covers = audio.tags.get("covr") or ()
    if covers:
        return bytes(covers[0])
    packed = audio.tags.get("metadata_block_picture") or ()
    return _front([*getattr(audio, "pictures", ()), *(Picture(base64.b64decode(text)) for text in packed)])


def _of_id3v2(file: FrugalFile) -> bytes | None:
    tag = read_id3v2(file, _FRAMES, _MAX_IMAGE_BYTES)
    return None if tag is None else _front(list(tag.values()))


def _of_chunk(file: FrugalFile) -> bytes | None:
    head = file.read(4)
    if head in (b"RIFF", b"FORM"):
        for name, _, _ in file_chunks(file, "<" if head == b"RIFF" else ">", 12, None):
            if name.lower() == b"id3 ":
                return _of_id3v2(file)
    return None


def _front(pictures: Sequence[Any]) -> bytes | None:
    return min(pictures, key=lambda picture: picture.type != _FRONT).data if pictures else None


def _image_beside(path: Path) -> Path | None:
    """The image in the folder of a file that is meant to be its cover."""
    return _image_in(path.parent, path.parent.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _image_in(folder: Path, changed_ns: int) -> Path | None:
    """The same, as the folder was when it last changed: ``cover`` before ``folder`` before ``front``."""
    names = sorted((e.name for e in os.scandir(folder) if _IMAGE.fullmatch(e.name)), key=str.lower)
    return next((folder / name for name in names if S_ISREG((folder / name).stat().st_mode)), None)
