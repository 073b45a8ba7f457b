"""Schemas of a model's JSON files, which may be untrusted. Unknown fields are ignored."""

from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

MAX_JSON = 1 << 20  # maximum size of a JSON file in bytes; typical files have a few thousand bytes
SOUND = "sound"  # the representation of the built-in model Sound
_MAX_PARTS = 256
_LARGEST = 1e12
_MAX_SEED = 2**63 - 1
_MAX_LOCATION = 80  # maximum number of characters for the location in an error message
_ABSENT: Any = None  # default of an optional field; an explicit null is invalid


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


def _check_range(number: float) -> float:
    if abs(number) > _LARGEST:
        raise ValueError("number out of range")
    return number


Count = Annotated[int, Field(ge=0, le=2**40)]
Figure = Annotated[float, AfterValidator(_check_range)]  # a measured value; NaN if it could not be measured
Number = Annotated[Figure, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=10_000)]


class Versions(_Schema):
    """The versions in ``model.json``, which are checked before the other fields."""

    format_version: int
    feature_version: int


class AboutModel(Versions):
    """``model.json``: the parameters and versions of a model."""

    musicsim: Annotated[str, Field(max_length=100)] = ""
    representation: Annotated[str, Field(max_length=100)]
    n_codewords: Annotated[int, Field(ge=1, le=2**20)]
    tau: Annotated[int, Field(ge=1, le=2**20)]
    variance: Annotated[float, Field(gt=0, le=1)]
    random_state: Annotated[int, Field(ge=0, le=_MAX_SEED)] | None
    n_songs: Count


class AboutSources(_Schema):
    """The models that a joint space contains."""

    names: Annotated[list[Name], Field(min_length=1, max_length=_MAX_PARTS)]
    model_ids: Annotated[list[Name], Field(min_length=1, max_length=_MAX_PARTS)]
    parts: Annotated[list[AboutModel], Field(min_length=1, max_length=_MAX_PARTS)]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not len(self.names) == len(self.model_ids) == len(self.parts):
            raise ValueError("each joined model must have a name and an id")
        return self


class AboutFile(_Schema):
    """``about.json`` of an exported model."""

    name: Name


class _Settings(_Schema):
    supervision: Name
    on: Annotated[list[Name], Field(max_length=_MAX_PARTS)]
    loss: Name
    C: Number | None
    k: Count
    threshold: Count
    overlap: Name = "jaccard"
    structure: Name
    regularizer: Name
    random_state: Annotated[int, Field(ge=0, le=_MAX_SEED)]
    listener: Text = ""
    method: Name
    generated: bool = False
    quick: bool = False


class _Pair(_Schema):
    before: Figure
    after: Figure


class _Lead(_Pair):
    mean: Figure
    low: Figure
    high: Figure
    shuffled: Figure = _ABSENT
    above_low: Figure = _ABSENT
    above_high: Figure = _ABSENT


class _Part(_Schema):
    songs: Count
    artists: Count


class _Split(_Schema):
    train: _Part
    validation: _Part
    test: _Part


class _Answers(_Schema):
    n: Count
    questions: Count
    comparisons: Count
    songs: Count
    agreed: _Lead = _ABSENT


class _Tried(_Schema):
    quality: Figure
    C: Number = _ABSENT
    gap: Figure = _ABSENT
    n_cuts: Count = _ABSENT
    rank: Count = _ABSENT
    setting: Name = _ABSENT


class _Source(_Schema):
    name: Name
    dimensions: Count
    share: Figure
    alone: Figure


_Songs = Annotated[list[Count], Field(max_length=1_000)]


class _Changed(_Schema):
    query: Count
    before: _Songs
    after: _Songs


class Report(_Schema):
    """``report.json``: the result of a training run."""

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
    untried: Count = 0
    untrained: Figure
    path: Annotated[list[_Tried], Field(max_length=1_000)]
    stopped_early: bool
    by_chance: Text = ""
    n_shuffled: Count = _ABSENT
    popularity: Annotated[dict[Name, Figure], Field(max_length=20)] = _ABSENT
    leads: Annotated[dict[Name, _Lead], Field(max_length=20)]
    is_better: bool
    hubness: _Pair
    sources: Annotated[list[_Source], Field(max_length=_MAX_PARTS)] = _ABSENT
    changed: Annotated[list[_Changed], Field(max_length=1_000)]

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        """Require either a split or answers, and either C or another setting."""
        if (self.split is None) == (self.answers is None):
            raise ValueError("it must have either a split or answers")
        if (self.setting is None) == (self.C is None):
            raise ValueError("it must have either C or another setting")
        needed = ("C", "gap", "n_cuts", "rank") if self.setting is None else ("setting",)
        if any(getattr(tried, name) is None for tried in self.path for name in needed):
            raise ValueError(f"each entry of its path must have {', '.join(needed)}")
        return self


T = TypeVar("T", bound=BaseModel)


def read_json(schema: type[T], text: bytes | str) -> T:
    """Parse JSON; raises ValueError with a one-line message that locates the first error."""
    try:
        return schema.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))[:_MAX_LOCATION]
        raise ValueError(f"{location}: {first['msg']}" if location else first["msg"]) from error


def read_json_file(schema: type[T], path: Path) -> T:
    """Parse a JSON file; raises ValueError like :func:`read_json`, and OSError if it cannot be read."""
    with path.open("rb") as stream:
        text = stream.read(MAX_JSON + 1)
    if len(text) > MAX_JSON:
        raise ValueError(f"{path.name} is larger than {MAX_JSON >> 20} MB")
    try:
        return read_json(schema, text)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
