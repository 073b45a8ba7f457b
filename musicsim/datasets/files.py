"""Find files of data sets on this machine, and fetch absent ones with pooch or scikit-learn.

Folders are searched in this order: ``MUSICSIM_SHARED_DATA``, then the cache. The cache is ``MUSICSIM_DATA_HOME``, or
``musicsim`` in the user's cache folder. ``MUSICSIM_DATA_URL`` is the address of a mirror: a web server whose folders
have the layout of the registry. With it, :func:`fetch` gets every file from there.
"""

import gzip
import hashlib
import lzma
import os
import shutil
import tempfile
import zipfile
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import IO

from musicsim.datasets import scikit_learn
from musicsim.datasets.records import DataFile, DataSet
from musicsim.datasets.registry import get_dataset
from musicsim.errors import DataSetAbsentError
from musicsim.extras import explain_missing

__all__ = ["data_home", "fetch", "fetched_folder", "find", "hash_files", "is_present", "open_text"]

_XZ = ".xz"


def data_home() -> Path:
    """Return the folder for fetched data sets."""
    if named := os.environ.get("MUSICSIM_DATA_HOME"):
        return Path(named)
    return Path(_import_pooch().os_cache("musicsim")) / "datasets"


def _import_pooch() -> ModuleType:
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise explain_missing(error, "musicsim.datasets", "data") from error
    return pooch


def find(name: str, file: str = "") -> Path:
    """Return the path of a file of a data set, or of its folder. Nothing is fetched.

    Parameters
    ----------
    name : str
        Name of a data set, as listed by :func:`list_datasets`.
    file : str
        Path of one file inside the data set's folder. Without it, all files must be there.

    Returns
    -------
    Path
        The file may end with ``.xz``; pandas decompresses it, and :func:`open_text` opens either form.

    Raises
    ------
    DataSetAbsentError
        If a file is absent. The message says how to get it.
    KeyError
        If there is no such data set.

    Examples
    --------
    >>> from musicsim.datasets import find, is_present
    >>> if is_present("gtzan"):
    ...     table = find("gtzan", "features_30_sec.csv")
    """
    data_set = get_dataset(name)
    wanted = [file] if file else [one.path for one in data_set.files]
    for folder in _folders(data_set):
        found = [_on_disk(folder / path) for path in wanted]
        if wanted and all(found):
            return found[0] if file and found[0] else folder
    raise DataSetAbsentError(_absent(data_set, file))


def is_present(name: str) -> bool:
    """Return whether a data set is on this machine.

    Examples
    --------
    >>> from musicsim.datasets import is_present
    >>> is_present("wine")  # a part of scikit-learn
    True
    """
    data_set = get_dataset(name)
    if data_set.fetcher == "bundled":
        return True
    try:
        find(name)
    except DataSetAbsentError:
        return fetched_folder(data_set) is not None
    return True


def open_text(name: str, file: str) -> IO[str]:
    """Open a text file of a data set for reading, compressed or not; raise DataSetAbsentError if it is absent.

    Examples
    --------
    >>> from musicsim.datasets import is_present, open_text
    >>> if is_present("yes"):
    ...     with open_text("yes", "yes_small/train.txt") as file:
    ...         n_songs = len(file.readline().split())
    """
    path = find(name, file)
    if path.suffix == _XZ:
        return lzma.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def fetch(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Download a data set, unless it is on this machine, and check its files by their SHA-256.

    Parameters
    ----------
    name : str
        Name of a data set, as listed by :func:`list_datasets`.
    folder : path, optional
        Used instead of the cache. To use the data from there, set ``MUSICSIM_SHARED_DATA`` to this folder.

    Returns
    -------
    Path
        The folder of the data set. For data that come with scikit-learn, the folder of scikit-learn's data.

    Raises
    ------
    DataSetAbsentError
        If the data set has no address, a download fails, or a checksum is wrong. No damaged file is left behind.

    Examples
    --------
    >>> import musicsim as ms
    >>> folder = ms.datasets.fetch("wine")   # comes with scikit-learn: nothing is downloaded
    """
    data_set = get_dataset(name)
    if data_set.fetcher == "bundled":
        return scikit_learn.bundled_file(data_set).parent
    home = Path(folder) if folder else data_home()
    target = home / data_set.folder
    mirror = os.environ.get("MUSICSIM_DATA_URL", "").rstrip("/")
    if not folder and is_present(name):
        return fetched_folder(data_set) or find(name)
    if data_set.fetcher and not (mirror and data_set.files):
        try:
            scikit_learn.fetch(data_set, target)
        except (OSError, ValueError) as error:
            if not data_set.files:
                raise DataSetAbsentError(f"{data_set.title} could not be fetched by scikit-learn: {error}") from error
        else:
            return target
    for file in data_set.files:
        if not _on_disk(target / file.path):
            _fetch_file(data_set, file, mirror, target)
    return target


def hash_files(name: str) -> dict[str, str]:
    """Return the SHA-256 of each file of a data set; "absent" if it is not on this machine.

    A file that is stored with ``.xz`` is hashed without. The hash is therefore that of the file at its source.

    Examples
    --------
    >>> from musicsim.datasets import hash_files
    >>> [len(sha256) for sha256 in hash_files("wine").values()]
    [64]
    """
    data_set = get_dataset(name)
    if data_set.fetcher == "bundled":
        path = scikit_learn.bundled_file(data_set)
        return {f"scikit-learn/{path.name}": hash_file(path)}
    hashes = {}
    for file in data_set.files:
        found = next(filter(None, (_on_disk(folder / file.path) for folder in _folders(data_set))), None)
        hashes[f"{data_set.folder}/{file.path}"] = hash_file(found) if found else "absent"
    if hashes and "absent" not in hashes.values():
        return hashes
    folder = fetched_folder(data_set)
    return scikit_learn.hash_fetched(data_set, folder) if folder else hashes or {data_set.name: "absent"}


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, decompressed if its name ends with ``.xz``."""
    with lzma.open(path, "rb") if path.suffix == _XZ else path.open("rb") as stream:
        hashed = hashlib.sha256()
        while block := stream.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest()


def fetched_folder(data_set: DataSet) -> Path | None:
    """Return the folder in which scikit-learn's fetcher has stored a data set, or None."""
    if not data_set.fetcher:
        return None
    return next((folder for folder in _folders(data_set) if scikit_learn.is_fetched(data_set, folder)), None)


def _folders(data_set: DataSet) -> list[Path]:
    """Return the possible folders of a data set, the shared one first."""
    shared = os.environ.get("MUSICSIM_SHARED_DATA")
    return [Path(home) / data_set.folder for home in (shared, data_home()) if home]


def _on_disk(path: Path) -> Path | None:
    return next((one for one in (path, path.with_name(path.name + _XZ)) if one.is_file()), None)


def _absent(data_set: DataSet, file: str = "") -> str:
    what = f"{data_set.title} ({file})" if file else data_set.title
    return f"{what} is absent. {data_set.how_to_get}"


def _fetch_file(data_set: DataSet, file: DataFile, mirror: str, target: Path) -> None:
    """Download one file to a temporary folder, check it, and move it to its place."""
    if not mirror and not file.address:
        raise DataSetAbsentError(_absent(data_set, file.path))
    place = target / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetch-") as scratch:
        if mirror:
            plain = f"{mirror}/{data_set.folder}/{file.path}"
            fetched = _download(plain + _XZ, scratch, required=False) or _download(plain, scratch)
        else:
            fetched = _download(file.address.partition("#")[0], scratch)
        assert fetched is not None
        try:
            fetched = fetched if mirror else _unpack(fetched, file)
            found = hash_file(fetched)
        except (EOFError, KeyError, OSError, lzma.LZMAError, zipfile.BadZipFile) as error:
            raise DataSetAbsentError(
                f"{data_set.title}: {fetched.name} arrived damaged ({error}). Try again."
            ) from error
        if file.sha256 and found != file.sha256:
            raise DataSetAbsentError(
                f"{data_set.title}: {file.path} has the SHA-256 {found} instead of {file.sha256}. The download was "
                "damaged, or the file at its source has changed. Try again, or ask the source for the old file."
            )
        final = place.with_name(place.name + _XZ) if fetched.suffix == _XZ else place
        shutil.move(fetched, final)


def _unpack(fetched: Path, file: DataFile) -> Path:
    """Return the file itself, if it was served in an archive or compressed."""
    archive, _, member = file.address.partition("#")
    if member:
        with zipfile.ZipFile(fetched) as held:
            return Path(held.extract(member, fetched.parent))
    if archive.endswith(".gz") and not file.path.endswith(".gz"):
        plain = fetched.with_suffix("")
        with gzip.open(fetched, "rb") as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
        return plain
    return fetched


def _download(address: str, folder: str, *, required: bool = True) -> Path | None:
    """Download a file with pooch; return None if an optional file is not at the address."""
    pooch = _import_pooch()
    pooch.get_logger().setLevel("WARNING")  # it would print the hash of each file
    try:
        name = pooch.retrieve(address, known_hash=None, path=folder, fname=address.rpartition("/")[2])
    except (OSError, ValueError) as error:
        if not required and getattr(getattr(error, "response", None), "status_code", None) == HTTPStatus.NOT_FOUND:
            return None
        raise DataSetAbsentError(f"{address} could not be fetched: {error}. Try again later.") from error
    return Path(name)
