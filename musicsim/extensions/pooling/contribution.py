"""The file that a library contributes: its content, its exact text, and the checks of a file from someone else."""

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

import musicsim
from musicsim.errors import LibraryError
from musicsim.explorer.learning.verdict import RANKED
from musicsim.explorer.requests.training import KINDS
from musicsim.extensions.pooling.disclosure import COUNTS, FAMILIES, N_FOLDS, SHARES

MAX_BYTES = 64 << 10
NAME = r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}"
"""Public names of models."""

_Hash = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Number = Annotated[float, Field(ge=-1e3, le=1e3, allow_inf_nan=False)]
_Count = Literal[COUNTS]  # type: ignore[valid-type]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Program(_Part):
    version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]{1,40}$")]
    code: _Hash  # hash of all Python files of musicsim


class ModelId(_Part):
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    hash: _Hash  # hash of the recipe and, if it is known, of the network


class Counts(_Part):
    songs: _Count
    queries: _Count
    artists: _Count
    genres: _Count  # genres with at least 20 songs
    shares: dict[Literal[FAMILIES], Literal[SHARES]]  # type: ignore[valid-type]


class FoldDifference(_Part):
    mean: _Number
    low: _Number
    high: _Number


class Difference(_Part):
    """The score of the second model minus that of the first, on the same queries."""

    mean: _Number
    standard_error: Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False)]
    folds: Annotated[tuple[FoldDifference, ...], Field(min_length=1, max_length=N_FOLDS)]


class Contribution(_Part):
    format: Literal["musicsim contribution"] = "musicsim contribution"
    version: Literal[1] = 1
    musicsim: Program
    ground_truth: Literal[tuple(KINDS)]  # type: ignore[valid-type]
    models: tuple[ModelId, ModelId]
    library: Counts
    differences: dict[Literal[tuple(RANKED)], Difference]  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.models[0] == self.models[1]:
            raise ValueError("both models are the same")
        if set(self.differences) != set(RANKED):
            raise ValueError(f"differences must have {', '.join(RANKED)}")
        return self

    @property
    def digest(self) -> str:
        """Hash of the measurements. The same library has the same one, even after unrelated changes of the program."""
        content = json.dumps(self.model_dump(mode="json", exclude={"musicsim"}), sort_keys=True, separators=(",", ":"))
        return sha256(content.encode()).hexdigest()

    @property
    def text(self) -> str:
        """Every byte that leaves."""
        return json.dumps(self.model_dump(mode="json") | {"digest": self.digest}, indent=1) + "\n"


def read_contribution(path: Path) -> Contribution:
    """Read and check a file; the LibraryError for an invalid one names it and says what is wrong."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise LibraryError(f"{path}: this file cannot be read ({error.strerror}). Check its name.") from error
    if len(data) > MAX_BYTES:
        raise LibraryError(f"{path}: this file is larger than {MAX_BYTES >> 10} kB, so it is not a contribution.")
    try:
        content = json.loads(data)
        digest = content.pop("digest", "") if isinstance(content, dict) else ""
        contribution = Contribution.model_validate_json(json.dumps(content))
    except (ValueError, RecursionError) as error:  # pydantic's and json's errors are ValueErrors
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise LibraryError(
            f"{path}: this file is not a contribution ({reason}). Write one with `musicsim evaluate --contribute`."
        ) from error
    if digest != contribution.digest:
        raise LibraryError(f"{path}: this file was changed after it was written. Ask for the original.")
    return contribution


@cache
def hash_code() -> str:
    """Return a hash of all Python files of the installed musicsim, with their names."""
    folder = Path(musicsim.__file__).parent
    digest = sha256()
    for file in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
