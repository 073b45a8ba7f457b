"""Reading and validating the arrays of a stored model, which may come from an untrusted file.

Headers are compared with the model's description before memory is allocated. All numbers must be in range, because
compiled kernels do not check the indices that they write to.
"""

import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.errors import ModelError
from musicsim.explorer.models.encoders import MAX_NUMBER, Arrays, StoredArray
from musicsim.explorer.models.representations import representations
from musicsim.explorer.models.schema import AboutModel
from musicsim.library import read_header
from musicsim.library.disk.archives import DAMAGED, open_archive
from musicsim.library.disk.npy_headers import Header

_MAX_ARRAYS = 4_096
_MAX_LENGTH = 1 << 14
_MAX_TEXT = 1 << 24  # maximum size of a string array in bytes
_MAX_DEPTH = 8  # maximum nesting of models that contain models
_SPACE = {"mean": StoredArray(("m",)), "components": StoredArray(("a", "m"))}
_LENGTHS = {"lengths": StoredArray(("groups",), least=0.0)}
_METRIC = {"metric": StoredArray(("d", "a"))}
_LOCAL = {
    "local_anchors": StoredArray(("regions", "d")),
    "local_metrics": StoredArray(("regions", "d", "d")),
    "local_decay": StoredArray((), least=0.0),
}


def read_arrays(path: Path, about: AboutModel) -> Arrays:
    """Read the arrays that a model needs from an uncompressed ``.npz`` file.

    Raises ValueError if an array is missing or damaged, has the wrong type or shape, or contains NaN or a number out of
    range. Raises ModelError if the representation is not installed, and OSError if the file cannot be read.
    """
    try:
        with open_archive(path, _MAX_ARRAYS) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
                raise ValueError("its arrays are compressed")
            # if the arrays are larger than the file, members of the archive overlap, as in a decompression bomb
            if sum(member.file_size for member in members.values()) > path.stat().st_size:
                raise ValueError("its arrays are larger than the file")
            headers = {}
            for name, member in members.items():
                with archive.open(member) as stream:
                    headers[name] = read_header(stream, member.file_size)
            read = partial(_read, archive, members)
            required = _Level(headers, read).check(about)
            return {name: read(name, stored) for name, stored in required.items()}
    except DAMAGED as error:
        raise ValueError(f"{path.name}: {error}") from error


def _read(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], name: str, stored: StoredArray
) -> npt.NDArray[Any]:
    with archive.open(members[name]) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    if stored.dtype is np.str_:
        return array
    array = np.asarray(array, dtype=stored.dtype)  # convert to native byte order
    most = MAX_NUMBER if array.dtype.kind == "f" else np.iinfo(np.int64).max
    if array.size and not (array.min() >= stored.least and array.max() <= most):  # comparisons with NaN are False
        raise ValueError(f"{name} contains NaN or numbers out of range")
    return array


class _Level:
    """Headers of a model, or of a part of it if there is a prefix; `read` reads an array whose header was checked."""

    def __init__(
        self,
        headers: Mapping[str, Header],
        read: Callable[[str, StoredArray], npt.NDArray[Any]],
        prefix: str = "",
        depth: int = 0,
    ) -> None:
        self._headers, self._read, self._prefix, self._depth = headers, read, prefix, depth
        self.lengths: dict[str, int] = {}
        self.required: dict[str, StoredArray] = {}

    def check(self, about: AboutModel) -> dict[str, StoredArray]:
        """Check all headers; return the requirements for the arrays that the model needs, keyed by name."""
        kind = representations().get(about.representation)
        if kind is None:
            raise ModelError(
                f"the representation {about.representation!r} of this model is not installed: install the extension "
                "that adds it, or choose another model."
            )
        self._require(kind.encoder.stored)
        if self.has(kind.encoder.added):
            self._require(kind.encoder.added)
        n_features = kind.encoder.n_stored_features(about, self)
        n_mapped = n_features if kind.n_mapped is None else kind.n_mapped
        self.lengths |= {"f": n_features, "1 + f": 1 + n_features, "m": n_mapped}
        if kind.weights is not None:
            self._require({"weights": StoredArray(kind.weights.shape)})
        self._require(_SPACE)
        if kind.unit_groups and self.has(_LENGTHS):
            self.lengths["groups"] = len(kind.unit_groups)
            self._require(_LENGTHS)
        if self.has(_METRIC):
            self._require(_METRIC)
        self.lengths.setdefault("d", self.lengths["a"])
        if not self.lengths["d"] <= self.lengths["a"] <= self.lengths["m"]:
            raise ValueError("it has more dimensions than features")
        if self.has(_LOCAL):
            self._require(_LOCAL)
        return self.required

    def value(self, name: str) -> npt.NDArray[Any]:
        """Read an array whose header has been checked."""
        return self._read(self._prefix + name, self.required[self._prefix + name])

    def n_dimensions_of_part(self, prefix: str, about: AboutModel) -> int:
        """Check the arrays of a part of this model, and return the number of dimensions of its vectors."""
        if self._depth == _MAX_DEPTH:
            raise ValueError(f"it contains models nested more than {_MAX_DEPTH} deep")
        level = _Level(self._headers, self._read, self._prefix + prefix, self._depth + 1)
        self.required |= level.check(about)
        return level.lengths["d"]

    def has(self, arrays: Mapping[str, StoredArray]) -> bool:
        """Return whether the file has any of these arrays."""
        return any(self._prefix + name in self._headers for name in arrays)

    def _require(self, arrays: Mapping[str, StoredArray]) -> None:
        for short_name, stored in arrays.items():
            name = self._prefix + short_name
            if name not in self._headers:
                raise ValueError(f"{name} is missing")
            header, is_text = self._headers[name], stored.dtype is np.str_
            same_type = header.dtype.kind == "U" if is_text else header.dtype.newbyteorder("=") == stored.dtype
            if not same_type or (is_text and header.size * header.dtype.itemsize > _MAX_TEXT):
                raise ValueError(f"{name} has the wrong type {header.dtype}")
            if len(header.shape) != len(stored.shape) or not all(map(self._fits, header.shape, stored.shape)):
                raise ValueError(f"{name} has the shape {header.shape}, which does not fit the other arrays")
            self.required[name] = stored

    def _fits(self, length: int, required: int | str) -> bool:
        if isinstance(required, int):
            return length == required
        return 0 < length <= _MAX_LENGTH and length == self.lengths.setdefault(required, length)
