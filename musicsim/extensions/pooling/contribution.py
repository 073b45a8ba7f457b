"""The file that a library contributes: its content, its exact text, and the checks of a file from someone else."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from musicsim import __version__
from musicsim.errors import LibraryError
from musicsim.explorer import RANKING_MEASURES, TRAINING_KINDS, read_json_file
from musicsim.extensions.pooling.disclosure import COUNTS, FAMILIES, N_FOLDS, SHARES

NAME = r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,39}"  # of a model, in public

_Hash = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Number = Annotated[float, Field(ge=-1e3, le=1e3, allow_inf_nan=False)]
_Count = Literal[COUNTS]  # type: ignore[valid-type]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class ModelId(_Part):
    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    hash: _Hash  # hash of the recipe and, if it is known, of the network


class LibraryCounts(_Part):
    songs: _Count
    queries: _Count
    artists: _Count
    genres: _Count  # genres with at least 20 songs
    shares: dict[Literal[FAMILIES], Literal[SHARES]]  # type: ignore[valid-type]


class PooledFold(_Part):
    mean: _Number
    low: _Number
    high: _Number


class ScoreDifference(_Part):
    """The score of the second model minus that of the first, on the same queries."""

    mean: _Number
    standard_error: Annotated[float, Field(gt=0, le=1e3, allow_inf_nan=False)]
    folds: Annotated[tuple[PooledFold, ...], Field(min_length=1, max_length=N_FOLDS)]


class Contribution(_Part):
    format: Literal["musicsim contribution"] = "musicsim contribution"
    version: Literal[1] = 1
    musicsim: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]{1,40}$")] = __version__
    commit: Annotated[str, Field(pattern="^([0-9a-f]{7,40}(-dirty)?)?$")]  # of musicsim; empty if unknown
    ground_truth: Literal[tuple(TRAINING_KINDS)]  # type: ignore[valid-type]
    models: tuple[ModelId, ModelId]
    library: LibraryCounts
    differences: Annotated[
        dict[Literal[tuple(RANKING_MEASURES)], ScoreDifference],  # type: ignore[valid-type]
        Field(min_length=len(RANKING_MEASURES)),
    ]

    @property
    def identity(self) -> str:
        """Hash of the measurements. The same library has the same one, even after unrelated changes of the program."""
        content = self.model_dump(mode="json", exclude={"musicsim", "commit", "digest"})
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def text(self) -> str:
        """Every byte that leaves."""
        return json.dumps(self.model_dump(mode="json") | {"digest": self.identity}, indent=1)


class _File(Contribution):
    digest: str

    @model_validator(mode="after")
    def _check_digest(self) -> Self:
        if self.digest != self.identity:
            raise ValueError("it was changed after it was written")
        return self


def read_contribution(path: Path) -> Contribution:
    """Read and check a file of at most 1 MB; the LibraryError for an invalid one names it and says what is wrong."""
    try:
        return read_json_file(_File, path)
    except (OSError, ValueError) as error:
        advice = "Use a file that `musicsim evaluate --contribute` has written."
        reason = getattr(error, "strerror", None) or error
        raise LibraryError(f"{path} is not a contribution: {reason}. {advice}") from error
