"""JSON bodies of requests: strict, limited in size, and only from the app's own pages and from other programs."""

import json
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

MAX_BYTES = 256 << 10

SongId = Annotated[int, Field(ge=1, lt=2**63)]


class Body(BaseModel):
    """A JSON object without unknown fields; numbers are not converted from texts."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


B = TypeVar("B", bound=Body)


class TextSafeJSON(JSONResponse):
    """JSON in which lone surrogates, which come from the names of files, are question marks."""

    def render(self, content: Any) -> bytes:
        """Return compact JSON in UTF-8."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def read_body(kind: type[B]) -> Callable[[Request], Coroutine[Any, Any, B]]:
    """Return a FastAPI dependency that reads a body; errors are one sentence that names the field."""

    async def read(request: Request) -> B:
        # Forms and simple requests from other sites cannot have this type: browsers send a preflight request first,
        # which the app rejects.
        if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "the body must be a JSON object: send it with 'Content-Type: application/json'.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                raise HTTPException(413, f"the body is larger than {MAX_BYTES >> 10} kB: send fewer songs.")
        try:
            return kind.model_validate_json(bytes(body))
        except ValidationError as error:
            raise HTTPException(422, _describe(error)) from None

    return read


def describe_body(kind: type[Body]) -> dict[str, Any]:
    """Return ``openapi_extra`` for a request with such a body."""
    schema = kind.model_json_schema()
    parts = schema.pop("$defs", {})

    def fill_in(node: Any) -> Any:
        """Replace references, which the schema of the whole interface could not resolve."""
        if isinstance(node, list):
            return [fill_in(one) for one in node]
        if not isinstance(node, dict):
            return node
        found = parts[node["$ref"].rpartition("/")[2]] if "$ref" in node else {}
        return {name: fill_in(value) for name, value in (found | node).items() if name != "$ref"}

    return {"requestBody": {"required": True, "content": {"application/json": {"schema": fill_in(schema)}}}}


def _describe(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = ""
    for part in first["loc"]:
        if part != "[key]":
            name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    if first["type"] == "extra_forbidden":
        return f"{name} is not a field of this request: leave it out."
    message = first["msg"].rstrip(".")
    return f"{name or 'the body'}: {message[0].lower()}{message[1:]}."
