"""A listening test as a file: its songs, pairs, orders and consent text, which nothing changes any more.

Listeners see neither the models nor the names of songs; both are in the file, so that whoever has it and the songs can
repeat the test. A digest shows whether anything in it was altered.
"""

import json
from hashlib import blake2b
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from musicsim.errors import LibraryError
from musicsim.extensions.listening_tests.request import MAX_MODELS
from musicsim.extensions.listening_tests.store import MAX_LISTENERS

FORMAT, VERSION = "musicsim listening test", 1
MAX_BYTES = 8 << 20
_MAX_PAIRS, _MAX_SONGS = 4_000, 4_000
_Text = Annotated[str, Field(max_length=10_000)]
_Place = Annotated[int, Field(ge=0)]


class Said(BaseModel):
    """What is read from a file: nothing is converted, and nothing unknown is taken."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class FrozenSong(Said):
    """A song and the seconds of it that are heard."""

    content_hash: Annotated[str, Field(pattern="^[0-9a-f]{1,128}$")]
    sound_hash: Annotated[str, Field(pattern="^[0-9a-f]{0,128}$")]  # finds it with other tags; empty: not known
    title: _Text
    artist: _Text
    start_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Pair(Said):
    """A query song and a result, by their places among the songs."""

    query: _Place
    result: _Place
    # which models gave the result, by their places; none of an attention check, whose result is the query itself
    models: Annotated[tuple[_Place, ...], Field(strict=False, max_length=MAX_MODELS)]

    @property
    def is_check(self) -> bool:
        """Whether it is there to see who listens."""
        return not self.models


class ListeningTest(Said):
    """A test, frozen."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    consent: Annotated[str, Field(min_length=1, max_length=10_000)]
    seconds: Annotated[int, Field(ge=1, le=600)]
    models: Annotated[tuple[_Text, ...], Field(strict=False, min_length=2, max_length=MAX_MODELS)]
    max_failed_checks: _Place
    songs: Annotated[tuple[FrozenSong, ...], Field(strict=False, max_length=_MAX_SONGS)]
    pairs: Annotated[tuple[Pair, ...], Field(strict=False, min_length=1, max_length=_MAX_PAIRS)]
    # places of pairs, an order a row; the listener of a number has the row of the number, from the first again after
    # the last
    orders: Annotated[
        tuple[Annotated[tuple[_Place, ...], Field(strict=False)], ...],
        Field(strict=False, min_length=1, max_length=MAX_LISTENERS),
    ]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for place, pair in enumerate(self.pairs):
            if max(pair.query, pair.result) >= len(self.songs) or max(pair.models, default=0) >= len(self.models):
                raise ValueError(f"pair {place} names a song or model that is not there")
            if pair.is_check != (pair.query == pair.result) or len(set(pair.models)) < len(pair.models):
                raise ValueError(f"pair {place} is neither a result nor an attention check")
        every = list(range(len(self.pairs)))
        if any(sorted(order) != every for order in self.orders):
            raise ValueError("an order does not hold every pair once")
        return self

    def order_of(self, number: int) -> tuple[int, ...]:
        """The order in which the listener of a number is asked."""
        return self.orders[number % len(self.orders)]

    @property
    def digest(self) -> str:
        """Tells tests apart, and altered ones from what they were."""
        return blake2b(_canonical(self.model_dump(mode="json")), digest_size=16).hexdigest()

    def to_json(self) -> str:
        """The file."""
        test = self.model_dump(mode="json")
        return json.dumps({"format": FORMAT, "version": VERSION, "digest": self.digest, "test": test})


def _canonical(test: dict[str, Any]) -> bytes:
    return json.dumps(test, sort_keys=True, separators=(",", ":")).encode()


def read_test(data: str | bytes, name: str = "the file") -> ListeningTest:
    """A test from its file.

    Raises LibraryError if it is none, too large, of a later version, or was altered.
    """
    if len(data) > MAX_BYTES:
        raise LibraryError(f"{name} has more than {MAX_BYTES >> 20} MB: it is no listening test.")
    try:
        held = json.loads(data)
        if not isinstance(held, dict) or held.get("format") != FORMAT:
            raise ValueError("it says that it is something else")
        if held.get("version") != VERSION:
            raise LibraryError(f"{name} is of version {held.get('version')}: update musicsim to read it.")
        test = ListeningTest.model_validate(held.get("test"))
    except (ValueError, RecursionError) as error:  # pydantic's and json's are ValueErrors
        raise LibraryError(f"{name} is no listening test that can be read ({_reason(error)}).") from error
    if held.get("digest") != test.digest:
        raise LibraryError(f"{name} was altered after it was frozen: ask for the file as it was exported.")
    return test


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}" if where else first["msg"]
    return str(error)
