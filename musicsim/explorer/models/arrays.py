"""The arrays of a model: what each has to be by what the model says of itself, and reading them once they are.

Shapes and types stand in the headers of the arrays, and are compared before memory is taken for a number. What is read
may come from a stranger: kernels that are compiled do not look where they write, so every number has to be in range.
"""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.explorer.models.encoders import MAX_NUMBER, Arrays, StoredArray
from musicsim.explorer.models.representations import representations
from musicsim.explorer.models.schema import AboutModel
from musicsim.library.disk.archives import DAMAGED, open_archive
from musicsim.library.disk.npy_headers import Header, read_header

_MAX_ARRAYS = 4_096
_MAX_LENGTH = 1 << 14
_MAX_TEXT = 1 << 24  # bytes of an array of texts
_MAX_DEPTH = 8  # of models that are made of models
_SPACE = {"mean": StoredArray(("m",)), "components": StoredArray(("a", "m"))}
_METRIC = {"metric": StoredArray(("d", "a"))}
_LOCAL = {
    "local_anchors": StoredArray(("regions", "d")),
    "local_metrics": StoredArray(("regions", "d", "d")),
    "local_decay": StoredArray((), least=0.0),
}


class MissingRepresentationError(ValueError):
    """A model compares something that neither the core nor an installed extension knows."""


def read_arrays(path: Path, about: AboutModel) -> Arrays:
    """Read the arrays of a model, an ``.npz`` file that is not packed; those that it does not need are left out.

    Raises ValueError if an array is missing, damaged, of another type or shape than the others and the description
    ask for, or holds NaN or a number out of range; :class:`MissingRepresentationError`, a ValueError, if its
    representation is not installed; OSError if the file cannot be read.
    """
    try:
        with open_archive(path, _MAX_ARRAYS) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
                raise ValueError("its arrays are packed")
            # members may share bytes of the file
            if sum(member.file_size for member in members.values()) > path.stat().st_size:
                raise ValueError("its arrays are larger than the file")
            headers = {name: _header(archive, member) for name, member in members.items()}

            def read(name: str, stored: StoredArray) -> npt.NDArray[Any]:
                return _read(archive, members[name], name, stored)

            wanted = _Level(headers, read).of(about)
            return {name: read(name, stored) for name, stored in wanted.items()}
    except DAMAGED as error:
        raise ValueError(f"{path.name}: {error}") from error


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    with archive.open(member) as stream:
        return read_header(stream, member.file_size)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, stored: StoredArray) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    if stored.dtype is np.str_:
        return array
    array = np.asarray(array, dtype=stored.dtype)  # in the machine's order of bytes
    most = MAX_NUMBER if array.dtype.kind == "f" else np.iinfo(np.int64).max
    if array.size and not (array.min() >= stored.least and array.max() <= most):  # NaN is neither
        raise ValueError(f"{name} holds NaN or numbers out of range")
    return array


class _Level:
    """The headers of a model, or of one of those that it is made of, compared with what it says of itself.

    `read` gives an array whose header has been compared, by its name and what it has to be; `prefix` stands before
    the names of a model that is part of another one.
    """

    def __init__(
        self,
        headers: Mapping[str, Header],
        read: Callable[[str, StoredArray], npt.NDArray[Any]],
        prefix: str = "",
        depth: int = 0,
    ) -> None:
        self._headers, self._read, self._prefix, self._depth = headers, read, prefix, depth
        self.lengths: dict[str, int] = {}
        self.wanted: dict[str, StoredArray] = {}

    def of(self, about: AboutModel) -> dict[str, StoredArray]:
        """The arrays that the model needs, by name."""
        kind = representations().get(about.representation)
        if kind is None:
            raise MissingRepresentationError(
                f"this model compares {about.representation!r}, and nothing that is installed here does: install the "
                "extension that adds it, or choose another model."
            )
        self._take(kind.encoder.stored)
        n_features = kind.encoder.n_stored_features(about, self)
        n_mapped = n_features if kind.n_mapped is None else kind.n_mapped
        self.lengths |= {"f": n_features, "1 + f": 1 + n_features, "m": n_mapped}
        if kind.weights is not None:
            self._take({"weights": StoredArray(kind.weights.shape)})
        self._take(_SPACE)
        if self._has(_METRIC):
            self._take(_METRIC)
        self.lengths.setdefault("d", self.lengths["a"])
        if not self.lengths["d"] <= self.lengths["a"] <= self.lengths["m"]:
            raise ValueError("it has more dimensions than what they are made of")
        if self._has(_LOCAL):
            self._take(_LOCAL)
        return self.wanted

    def value(self, name: str) -> npt.NDArray[Any]:
        """An array whose header has been compared."""
        return self._read(self._prefix + name, self.wanted[self._prefix + name])

    def n_dimensions_of_part(self, prefix: str, about: AboutModel) -> int:
        """Compare the arrays of a model that it is made of, and want them; returns how many dimensions it has."""
        if self._depth == _MAX_DEPTH:
            raise ValueError(f"it is made of models of models, {_MAX_DEPTH} deep")
        level = _Level(self._headers, self._read, self._prefix + prefix, self._depth + 1)
        self.wanted |= level.of(about)
        return level.lengths["d"]

    def _has(self, some: Mapping[str, StoredArray]) -> bool:
        return any(self._prefix + name in self._headers for name in some)

    def _take(self, some: Mapping[str, StoredArray]) -> None:
        """Compare arrays with their headers, and want them."""
        for short, stored in some.items():
            name = self._prefix + short
            if name not in self._headers:
                raise ValueError(f"{name} is missing")
            header = self._headers[name]
            self._compare(name, header, stored)
            self.wanted[name] = stored

    def _compare(self, name: str, header: Header, stored: StoredArray) -> None:
        is_text = stored.dtype is np.str_
        same_type = header.dtype.kind == "U" if is_text else header.dtype.newbyteorder("=") == stored.dtype
        if not same_type or (is_text and header.size * header.dtype.itemsize > _MAX_TEXT):
            raise ValueError(f"{name} is of type {header.dtype}")
        if len(header.shape) != len(stored.shape) or not all(map(self._fits, header.shape, stored.shape)):
            raise ValueError(f"{name} has the shape {header.shape}, which does not fit the others")

    def _fits(self, length: int, wanted: int | str) -> bool:
        if isinstance(wanted, int):
            return length == wanted
        return 0 < length <= _MAX_LENGTH and length == self.lengths.setdefault(wanted, length)
