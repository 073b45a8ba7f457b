"""Pieces from Debian's game packages, fetched from its archive: for experiments.real_music.

The pieces have their packages' own licenses, so the program does not ship them.
"""

import csv
import hashlib
import lzma
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.support.report import Progress
from musicsim.errors import MusicsimError
from musicsim.library.disk.arrays import atomic_folder

__all__ = ["CACHE", "LABELS", "FetchError", "fetch"]

LABELS = Path(__file__).parents[1] / "real_music.csv"
"""Package, path in it and composer of each piece; nothing where the composer is not known."""

CACHE = Path(__file__).parents[2] / "data" / "experiments" / "real_music"
"""Of the pieces, of what was computed of them, and of parts that are done, unless the command line names another."""

_MIRROR = "http://deb.debian.org/debian"
_MIRROR_VARIABLE = "MUSICSIM_DEBIAN_MIRROR"
_INDEX = "dists/bookworm/main/binary-amd64/Packages.xz"
_PATIENCE_S = 60.0
_AR, _AR_HEADER = b"!<arch>\n", 60


class FetchError(MusicsimError):
    """Error if the pieces cannot be fetched; the message has the reason and advice."""


def fetch(folder: Path, progress: Progress) -> None:
    """Fetch the pieces of :data:`LABELS`, one folder per package; skip packages that are already there.

    Parameters
    ----------
    folder : Path
        Needs 0.9 GB.

    Raises
    ------
    FetchError
        If the archive does not answer, or a package does not match the archive's index.
    """
    wanted: dict[str, set[str]] = {}
    with LABELS.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            wanted.setdefault(row["package"], set()).add(row["path"])
    missing = [package for package in wanted if not (folder / package).is_dir()]
    if not missing:
        return
    mirror = os.environ.get(_MIRROR_VARIABLE, _MIRROR).rstrip("/")
    try:
        files = _files_of(f"{mirror}/{_INDEX}", set(missing))
        for number, package in enumerate(missing):
            progress(f"fetching {package}, {number + 1} of {len(missing)} packages")
            path, digest = files[package]
            with TemporaryDirectory() as scratch, atomic_folder(folder / package) as target:
                archive = Path(scratch) / "package.deb"
                _download(f"{mirror}/{path}", archive, digest)
                _unpack(archive, wanted[package], target)
    except (URLError, TimeoutError, ConnectionError, KeyError, tarfile.TarError, lzma.LZMAError) as error:
        raise FetchError(
            f"{mirror}: the pieces cannot be fetched from this mirror of Debian ({error}). Name another one by "
            f"{_MIRROR_VARIABLE}, or give a folder (--music) or a library (--library)."
        ) from error


def _files_of(url: str, packages: set[str]) -> dict[str, tuple[str, str]]:
    """Return the archive path and SHA-256 of each package by name."""
    found: dict[str, tuple[str, str]] = {}
    with urlopen(url, timeout=_PATIENCE_S) as answer, lzma.open(answer, "rt", encoding="utf-8") as lines:
        fields: dict[str, str] = {}
        for line in lines:
            if line.strip():
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            else:
                if fields.get("Package") in packages:
                    found[fields["Package"]] = fields["Filename"], fields["SHA256"]
                fields = {}
    return found


def _download(url: str, target: Path, digest: str) -> None:
    with urlopen(url, timeout=_PATIENCE_S) as answer, target.open("wb") as stream:
        shutil.copyfileobj(answer, stream)
    with target.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
            raise FetchError(f"{url}: the file is not what the index of the archive says. Fetch it again.")


def _unpack(archive: Path, wanted: set[str], folder: Path) -> None:
    """Extract the wanted files of a Debian package into a folder, keeping only the last folder of each path."""
    with archive.open("rb") as stream:
        _seek_data(stream)
        with tarfile.open(fileobj=stream, mode="r:*") as members:
            for member in members:
                path = member.name.removeprefix("./")
                content = members.extractfile(member) if path in wanted and member.isreg() else None
                if content is not None:
                    target = folder / Path(path).parent.name / Path(path).name
                    target.parent.mkdir(exist_ok=True)
                    with content, target.open("wb") as piece:
                        shutil.copyfileobj(content, piece)


def _seek_data(stream: IO[bytes]) -> None:
    """Move to the tar archive of a package's files: a Debian package is an ar archive of three members."""
    if stream.read(len(_AR)) != _AR:
        raise tarfile.ReadError("not a Debian package")
    for name, size in _members(stream):
        if name.startswith(b"data.tar"):
            return
        stream.seek(size + size % 2, os.SEEK_CUR)
    raise tarfile.ReadError("a Debian package without data")


def _members(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    while header := stream.read(_AR_HEADER):
        yield header[:16].rstrip(), int(header[48:58])
