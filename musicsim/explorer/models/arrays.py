"""The arrays of a model: what each has to be by what the model says of itself, and reading them once they are.

Shapes and types stand in the headers of the arrays, and are compared before memory is taken for a number. What is read
may come from a stranger: kernels that are compiled do not look where they write, so every number has to be in range.
"""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim.audio import HARMONY_SIZE, RHYTHM_SIZE
from musicsim.audio.features import N_MFCC
from musicsim.codebook import Codebook
from musicsim.explorer.models.encoders import (
    CODEWORDS,
    COMBINED,
    REPRESENTATIONS,
    AspectRows,
    LyricVocabulary,
    OwnVectors,
    TagVocabulary,
)
from musicsim.explorer.models.joint_space import Sources
from musicsim.explorer.models.schema import AboutModel, AboutSources, read_json
from musicsim.kernels import KEYLESS_HARMONY_SIZE
from musicsim.library.disk.archives import DAMAGED, open_archive
from musicsim.library.disk.npy_headers import Header, read_header
from musicsim.mixtures import MixtureSpace, SemanticMultinomials

__all__ = ["read_arrays"]

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

_MAX_ARRAYS = 4_096
_MAX_LENGTH = 1 << 14
_MAX_TEXT = 1 << 24  # bytes of an array of texts
_MAX_DEPTH = 8  # of models that are made of models
# Vectors are of the order of 1. Products of a few such numbers do not overflow in float32, and no codeword is as far
# as what fills a block of the kernels.
_MAX_NUMBER = 1e9
_MIN_SCALE = 1e-12
_N_COLUMNS = 3 * N_MFCC  # of frames


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a stored array has to be.

    Attributes
    ----------
    shape : tuple of int or str
        Names stand for lengths that are equal wherever they come: ``f`` features, ``m`` columns that they are mapped
        to, ``a`` axes, ``r`` rows of a metric, ``d`` dimensions of a vector.
    dtype : type
    least : float
        The smallest number that it may hold.
    """

    shape: tuple[int | str, ...]
    dtype: type = np.float64
    least: float = -_MAX_NUMBER


_MIXTURES = {
    "front_weights": _Stored(("mixtures", "components"), np.float32, _MIN_SCALE),
    "front_means": _Stored(("mixtures", "components", _N_COLUMNS), np.float32),
    "front_variances": _Stored(("mixtures", "components", _N_COLUMNS), np.float32, _MIN_SCALE),
}
_FRONTS: dict[type, dict[str, _Stored]] = {
    Codebook: {
        "codewords": _Stored(("f", _N_COLUMNS)),
        "frame_mean": _Stored((_N_COLUMNS,)),
        "frame_scale": _Stored((_N_COLUMNS,), least=_MIN_SCALE),
        "counts": _Stored(("f",), np.int64, 0),
    },
    MixtureSpace: {
        **_MIXTURES,
        "front_projection": _Stored(("mixtures", "f")),
        "front_gamma": _Stored((), least=_MIN_SCALE),
        "front_seed": _Stored((), np.int64, 0),
    },
    SemanticMultinomials: {
        **_MIXTURES,
        "front_mean": _Stored((_N_COLUMNS,)),
        "front_scale": _Stored((_N_COLUMNS,), least=_MIN_SCALE),
        "front_tags": _Stored(("f",), np.str_),
    },
    TagVocabulary: {"tags": _Stored(("f",), np.str_)},
    LyricVocabulary: {"words": _Stored(("f",), np.str_)},
    AspectRows: {"aspect": _Stored((), np.str_)},
    OwnVectors: {"key": _Stored((), np.str_), "n_dimensions": _Stored((), np.int64, 1)},
    Sources: {"front_about": _Stored((), np.str_)},
}
_WEIGHTS: dict[str, tuple[str, ...]] = {"tfidf": ("f",), "lyrics": ("f",), COMBINED: ("1 + f", "f")}
_SPACE = {"mean": _Stored(("m",)), "components": _Stored(("a", "m"))}
_METRIC = {"metric": _Stored(("d", "a"))}
_LOCAL = {
    "local_anchors": _Stored(("regions", "d")),
    "local_metrics": _Stored(("regions", "d", "d")),
    "local_decay": _Stored((), least=0.0),
}


def read_arrays(path: Path, about: AboutModel) -> Arrays:
    """Read the arrays of a model; those that it does not need are left out.

    Parameters
    ----------
    path : Path
        An ``.npz`` file that is not packed, as :meth:`SimilarityModel.save` writes it.
    about : AboutModel

    Raises
    ------
    ValueError
        If an array is missing, damaged, of another type or shape than the others and the description ask for, or
        holds NaN or a number out of range.
    OSError
        If the file cannot be read.
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

            def read(name: str, stored: _Stored) -> npt.NDArray[Any]:
                return _read(archive, members[name], name, stored)

            wanted = _Level(headers, read).of(about)
            return {name: read(name, stored) for name, stored in wanted.items()}
    except DAMAGED as error:
        raise ValueError(f"{path.name}: {error}") from error


def _header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    with archive.open(member) as stream:
        return read_header(stream, member.file_size)


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, stored: _Stored) -> npt.NDArray[Any]:
    with archive.open(member) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    if stored.dtype is np.str_:
        return array
    array = np.asarray(array, dtype=stored.dtype)  # in the machine's order of bytes
    most = _MAX_NUMBER if array.dtype.kind == "f" else np.iinfo(np.int64).max
    if array.size and not (array.min() >= stored.least and array.max() <= most):  # NaN is neither
        raise ValueError(f"{name} holds NaN or numbers out of range")
    return array


class _Level:
    """The headers of a model, or of one of those that it is made of, compared with what it says of itself.

    Parameters
    ----------
    headers : mapping of Header by name
    read : callable of (name, what it has to be)
        Reads an array whose header has been compared.
    prefix : str
        Before the names of a model that is part of another one.
    """

    def __init__(
        self,
        headers: Mapping[str, Header],
        read: Callable[[str, _Stored], npt.NDArray[Any]],
        prefix: str = "",
        depth: int = 0,
    ) -> None:
        self._headers, self._read, self._prefix, self._depth = headers, read, prefix, depth
        self.lengths: dict[str, int] = {}
        self.wanted: dict[str, _Stored] = {}

    def of(self, about: AboutModel) -> dict[str, _Stored]:
        """The arrays that the model needs, by name."""
        if about.representation not in REPRESENTATIONS:
            raise ValueError(f"no representation of this program is called {about.representation!r}")
        front = REPRESENTATIONS[about.representation].front
        self._take(_FRONTS[front])
        self.lengths |= self._lengths(about, front)
        self.lengths["1 + f"] = 1 + self.lengths["f"]
        if about.representation in CODEWORDS and about.tau > self.lengths["f"]:
            raise ValueError(f"tau is {about.tau}, with {self.lengths['f']} codewords")
        if about.representation in _WEIGHTS:
            self._take({"weights": _Stored(_WEIGHTS[about.representation])})
        self._take(_SPACE)
        if self._has(_METRIC):
            self._take(_METRIC)
        self.lengths.setdefault("d", self.lengths["a"])
        if not self.lengths["d"] <= self.lengths["a"] <= self.lengths["m"]:
            raise ValueError("it has more dimensions than what they are made of")
        if self._has(_LOCAL):
            self._take(_LOCAL)
        return self.wanted

    def _has(self, some: Mapping[str, _Stored]) -> bool:
        return any(self._prefix + name in self._headers for name in some)

    def _take(self, some: Mapping[str, _Stored]) -> None:
        """Compare arrays with their headers, and want them."""
        for short, stored in some.items():
            name = self._prefix + short
            if name not in self._headers:
                raise ValueError(f"{name} is missing")
            header = self._headers[name]
            self._compare(name, header, stored)
            self.wanted[name] = stored

    def _compare(self, name: str, header: Header, stored: _Stored) -> None:
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

    def _lengths(self, about: AboutModel, front: type) -> dict[str, int]:
        """Lengths that do not follow from shapes: of features, and of what they are mapped to."""
        if front is AspectRows:
            if str(self._value("aspect", front)) != about.representation:
                raise ValueError("its aspect is not what it compares")
            n_features = {"harmony": HARMONY_SIZE, "rhythm": RHYTHM_SIZE}[about.representation]
        elif front is OwnVectors:
            n_features = int(self._value("n_dimensions", front))
        elif front is Sources:
            n_features = self._of_parts(read_json(AboutSources, str(self._value("front_about", front))))
        else:
            n_features = self.lengths["f"]
        mapped = KEYLESS_HARMONY_SIZE if about.representation == "harmony" else n_features
        return {"f": n_features, "m": mapped}

    def _value(self, name: str, front: type) -> npt.NDArray[Any]:
        return self._read(self._prefix + name, _FRONTS[front][name])

    def _of_parts(self, sources: AboutSources) -> int:
        """Compare the arrays of the models that it is made of, and want them; returns how many dimensions they have."""
        if self._depth == _MAX_DEPTH:
            raise ValueError(f"it is made of models of models, {_MAX_DEPTH} deep")
        total = 0
        for number, part in enumerate(sources.parts):
            level = _Level(self._headers, self._read, f"{self._prefix}front_{number}_", self._depth + 1)
            self.wanted |= level.of(part)
            total += level.lengths["d"]
        return total
