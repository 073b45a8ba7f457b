"""What a model says of itself in JSON: the one schema that writes it and reads it, from wherever it comes.

Fields that are not known are left out: a version that needs them has a format of its own.
"""

from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

MAX_JSON = 1 << 20
"""Bytes of a file of JSON; those that the program writes have some thousands."""
SOUND = "sound"
"""The representation of the native model."""
_MAX_PARTS = 256
_LARGEST = 1e12
_MAX_SEED = 2**63 - 1
_MAX_PLACE = 80
_ABSENT: Any = None  # the default of what may be left out; null in its place is refused


class _Said(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


def _bounded(number: float) -> float:
    if abs(number) > _LARGEST:
        raise ValueError("number out of range")
    return number


Count = Annotated[int, Field(ge=0, le=2**40)]
Figure = Annotated[float, AfterValidator(_bounded)]
"""A measure: a number, or NaN where nothing could be measured."""
Number = Annotated[Figure, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]


# --- models ---------------------------------------------------------------------------------------


class Versions(_Said):
    """What a description has to be of, before the rest of it means anything."""

    format_version: int
    feature_version: int


class AboutModel(Versions):
    """``model.json``: what it takes beside the arrays to make a model again."""

    musicsim: Annotated[str, Field(max_length=100)] = ""
    representation: Annotated[str, Field(max_length=100)]
    n_codewords: Annotated[int, Field(ge=1, le=2**20)]
    tau: Annotated[int, Field(ge=1, le=2**20)]
    variance: Annotated[float, Field(gt=0, le=1)]
    random_state: Annotated[int, Field(ge=0, le=_MAX_SEED)] | None
    n_songs: Count


class AboutSources(_Said):
    """What several models together are made of."""

    names: Annotated[list[Name], Field(min_length=1, max_length=_MAX_PARTS)]
    model_ids: Annotated[list[Name], Field(min_length=1, max_length=_MAX_PARTS)]
    parts: Annotated[list[AboutModel], Field(min_length=1, max_length=_MAX_PARTS)]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not len(self.names) == len(self.model_ids) == len(self.parts):
            raise ValueError("each of several models should have a name and an id")
        return self


class AboutFile(_Said):
    """``about.json`` of a model that was sent."""

    name: Name


# --- reports --------------------------------------------------------------------------------------


class _Settings(_Said):
    supervision: Name
    on: Annotated[list[Name], Field(max_length=_MAX_PARTS)]
    loss: Name
    C: Number | None
    k: Count
    threshold: Count
    structure: Name
    regularizer: Name
    random_state: Annotated[int, Field(ge=0, le=_MAX_SEED)]
    listener: Text = ""
    method: Name
    generated: bool = False


class _Lead(_Said):
    before: Figure
    after: Figure
    mean: Figure
    low: Figure
    high: Figure


class _Pair(_Said):
    before: Figure
    after: Figure


class _Part(_Said):
    songs: Count
    artists: Count


class _Split(_Said):
    train: _Part
    validation: _Part
    test: _Part


class _Answers(_Said):
    n: Count
    questions: Count
    comparisons: Count
    songs: Count


class _Tried(_Said):
    """What came of a C, or of other settings."""

    quality: Figure
    C: Number = _ABSENT
    gap: Figure = _ABSENT
    n_cuts: Count = _ABSENT
    rank: Count = _ABSENT
    setting: Name = _ABSENT


class _Source(_Said):
    name: Name
    dimensions: Count
    share: Figure
    alone: Figure


_Songs = Annotated[list[Count], Field(max_length=1_000)]


class _Changed(_Said):
    query: Count
    before: _Songs
    after: _Songs


class Report(_Said):
    """``report.json``: what a training came to."""

    name: Name
    base: Text
    created_at: Number
    seconds: Annotated[Number, Field(ge=0)]
    version: Annotated[str, Field(max_length=100)]
    settings: _Settings
    detail: Text
    n_songs: Count
    n_artists: Count = _ABSENT
    split: _Split = _ABSENT
    answers: _Answers = _ABSENT
    C: Number | None
    setting: Name = _ABSENT
    rejected: Text = ""
    untrained: Figure
    path: Annotated[list[_Tried], Field(max_length=1_000)]
    stopped_early: bool
    leads: Annotated[dict[Name, _Lead], Field(max_length=20)]
    is_better: bool
    hubness: _Pair
    sources: Annotated[list[_Source], Field(max_length=_MAX_PARTS)] = _ABSENT
    changed: Annotated[list[_Changed], Field(max_length=1_000)]

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        """Of a ranking with its C, or of a metric in closed form with its setting; judged by artists or answers."""
        if (self.split is None) == (self.answers is None):
            raise ValueError("it should say which artists, or which answers, it was judged by")
        if (self.setting is None) == (self.C is None):
            raise ValueError("it should say which C, or which other setting, was chosen")
        needed = ("C", "gap", "n_cuts", "rank") if self.setting is None else ("setting",)
        if any(getattr(tried, name) is None for tried in self.path for name in needed):
            raise ValueError(f"each entry of its path should have {', '.join(needed)}")
        return self


# --- reading --------------------------------------------------------------------------------------

_Schema = TypeVar("_Schema", bound=_Said)


def read_json(schema: type[_Schema], text: bytes | str) -> _Schema:
    """JSON as a schema has it.

    Raises ValueError if it is none, or says something else; in one line, with the place.
    """
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:_MAX_PLACE]
        raise ValueError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def read_json_file(schema: type[_Schema], path: Path) -> _Schema:
    """A file of JSON as a schema has it; raises as :func:`read_json`, and OSError if it cannot be read."""
    with path.open("rb") as stream:
        text = stream.read(MAX_JSON + 1)
    if len(text) > MAX_JSON:
        raise ValueError(f"{path.name} is larger than {MAX_JSON >> 20} MB")
    try:
        return read_json(schema, text)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
