"""The file that defines a listening test: songs, pairs, orders and consent text. A digest reveals later changes."""

import json
from hashlib import blake2b
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from musicsim.errors import LibraryError
from musicsim.explorer import read_json
from musicsim.extensions.listening_tests.store import MAX_LISTENERS, MAX_MODELS

FORMAT, VERSION = "musicsim listening test", 1
MAX_BYTES = 8 << 20
_MAX_PAIRS, _MAX_SONGS = 4_000, 4_000
_Text = Annotated[str, Field(max_length=10_000)]
_Index = Annotated[int, Field(ge=0)]


class FileModel(BaseModel):
    """Strictly validated content of a file: no type conversions and no unknown fields."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class FrozenSong(FileModel):
    content_hash: Annotated[str, Field(pattern="^[0-9a-f]{1,128}$")]
    sound_hash: Annotated[str, Field(pattern="^[0-9a-f]{0,128}$")]  # does not depend on tags; empty if unknown
    title: _Text
    artist: _Text
    start_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Pair(FileModel):
    """A query song and a result, as indices into the test's songs."""

    query: _Index
    result: _Index
    # indices of the models that found this result; empty for an attention check, which pairs a query with itself
    models: Annotated[tuple[_Index, ...], Field(strict=False, max_length=MAX_MODELS)]

    @property
    def is_check(self) -> bool:
        return not self.models


class ListeningTest(FileModel):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    consent: Annotated[str, Field(min_length=1, max_length=10_000)]
    seconds: Annotated[int, Field(ge=1, le=600)]
    models: Annotated[tuple[_Text, ...], Field(strict=False, min_length=2, max_length=MAX_MODELS)]
    max_failed_checks: _Index
    songs: Annotated[tuple[FrozenSong, ...], Field(strict=False, max_length=_MAX_SONGS)]
    pairs: Annotated[tuple[Pair, ...], Field(strict=False, min_length=1, max_length=_MAX_PAIRS)]
    # orders of all pairs, as indices into `pairs`; assigned to listeners in turn
    orders: Annotated[
        tuple[Annotated[tuple[_Index, ...], Field(strict=False)], ...],
        Field(strict=False, min_length=1, max_length=MAX_LISTENERS),
    ]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for i, pair in enumerate(self.pairs):
            if max(pair.query, pair.result) >= len(self.songs) or max(pair.models, default=0) >= len(self.models):
                raise ValueError(f"pair {i} refers to a song or model that the file does not contain")
            if pair.is_check != (pair.query == pair.result) or len(set(pair.models)) < len(pair.models):
                raise ValueError(f"pair {i} is neither a query with a result nor an attention check")
        every = list(range(len(self.pairs)))
        if any(sorted(order) != every for order in self.orders):
            raise ValueError("an order must contain each pair exactly once")
        return self

    def order_of(self, number: int) -> tuple[int, ...]:
        return self.orders[number % len(self.orders)]

    @property
    def digest(self) -> str:
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def to_json(self) -> str:
        test = self.model_dump(mode="json")
        return json.dumps({"format": FORMAT, "version": VERSION, "digest": self.digest, "test": test})


def read_test(data: str | bytes, name: str = "the file") -> ListeningTest:
    """Read a test from its file. Raises LibraryError if the file is not a test, is too large, or was altered."""
    if len(data) > MAX_BYTES:
        raise LibraryError(f"{name} is larger than {MAX_BYTES >> 20} MB, so it is not a listening test.")
    try:
        content = json.loads(data)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("it has a different format")
        if content.get("version") != VERSION:
            raise LibraryError(f"{name} has version {content.get('version')}. Update musicsim to read it.")
        test = read_json(ListeningTest, json.dumps(content.get("test")))
    except (ValueError, RecursionError) as error:
        raise LibraryError(f"{name} cannot be read as a listening test ({error}).") from error
    if content.get("digest") != test.digest:
        raise LibraryError(f"{name} was altered after it was saved. Use the original file.")
    return test
