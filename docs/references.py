"""Write the generated parts of ``commands.md``, ``http_reference.md`` and ``hooks.md``: ``python docs/references.py``.

Typer describes the commands. The requests of the HTTP interface come from its OpenAPI schema, as at ``/api/docs``, and
the hooks from their Protocols.
"""

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import typer
from typer.cli import get_docs_for_click

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ["XDG_CONFIG_HOME"] = os.devnull  # the pages list no extensions of this machine

from docs.blocks import fill_blocks  # noqa: E402
from docs.hook_page import PAGE, describe_hooks  # noqa: E402
from musicsim.api.http import http_interface  # noqa: E402
from musicsim.audio import DESCRIPTORS  # noqa: E402
from musicsim.cli import program  # noqa: E402

FOLDER = ROOT / "docs" / "connect"
_OBJECTS = ("song", "result", "album", "model", "track", "match", "option", "queue", "sound", "explanation", "job")
"""Objects in answers, each of which has a section with its plural as the title."""
_OBJECT = re.compile(rf"\b(list of|an?) (({'|'.join(_OBJECTS)})(?:e?s)?)\b|(facts about the map)")
_TYPES = {"array": "list", "boolean": "`true` or `false`", "object": "object", "string": "text"}


def link(title: str) -> str:
    """Return a link to a heading of the same page."""
    return f"[{title}](#{re.sub(r'[^a-z0-9_ -]', '', title.lower()).replace(' ', '-')})"


def load_commands() -> Any:
    """Return the program with all visible commands, which it imports only on demand otherwise."""
    return _load("musicsim", typer.main.get_command(program))


def _load(name: str, command: Any) -> Any:
    loaded = command.load() if hasattr(command, "load") else command
    loaded.name, loaded.rich_help_panel = name, command.rich_help_panel
    loaded.short_help = loaded.help.partition("\n")[0]  # Typer would cut it
    loaded.help = _format_help(loaded.help)
    if loaded.epilog:
        heading, *examples = loaded.epilog.split("\n\n")
        loaded.epilog = "\n".join([f"{heading}\n\n```text", *examples, "```"])
    if hasattr(loaded, "commands"):
        loaded.commands = {key: _load(key, one) for key, one in loaded.commands.items() if not one.hidden}
    return loaded


def _format_help(text: str) -> str:
    """Return a help text in Markdown; parts that are separated by two spaces become a list."""
    paragraphs = [paragraph.split("  ") for paragraph in text.split("\n\n")]
    return "\n\n".join("\n".join(f"- {part}" for part in parts) if parts[1:] else parts[0] for parts in paragraphs)


def describe_commands() -> str:
    """Return the section about each command, as Typer describes it, under the headings of ``musicsim --help``."""
    top = load_commands()
    context = typer.Context(top, **top.context_settings)
    panels: dict[str, list[Any]] = defaultdict(list)
    for command in top.commands.values():
        panels[command.rich_help_panel].append(command)
    text = ""
    for panel, commands in panels.items():
        text += f"- {link(panel)}: {', '.join(f'`musicsim {command.name}`' for command in commands)}\n"
    for panel, commands in panels.items():
        sections = (get_docs_for_click(obj=one, ctx=context, indent=2, call_prefix="musicsim") for one in commands)
        text += f"\n## {panel}\n\n{''.join(sections).rstrip()}\n"
    top.commands = {}
    before = get_docs_for_click(obj=top, ctx=context, indent=1, name="musicsim", title="Options before the command")
    return f"{text}\n{before.rstrip()}\n"


def list_requests(*, is_public: bool) -> dict[str, Any]:
    """Return the operations of the schema, keyed by method and path; optionally only those for visitors."""
    with mock.patch.dict(os.environ, MUSICSIM_PUBLIC=str(int(is_public))):
        paths = http_interface().openapi()["paths"]
    return {f"{method.upper()} /api{path}": one for path, methods in paths.items() for method, one in methods.items()}


def describe_requests() -> str:
    """Return the section about each request of the HTTP interface."""
    requests, of_visitors = list_requests(is_public=False), list_requests(is_public=True)
    text = "".join(f"- {link(name)}\n" for name in requests)
    for name, request in requests.items():
        text += f"\n## {name}\n\n{request['description']}\n"
        text += _make_table(request.get("parameters", ()))
        if body := request.get("requestBody", {}).get("content", {}).get("application/json"):
            text += f"\nFields of the body:\n{_make_table(_list_fields(body['schema']))}"
        text += f"\n{_describe_answers(request['responses'])}\n"
        if name not in of_visitors:
            text += "\nA public demonstration does not offer this request.\n"
    return text


def _list_fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[dict[str, Any]]:
    """Yield the fields of a JSON object as parameters, those of inner objects after their object."""
    for name, field in schema.get("properties", {}).items():
        yield {"name": prefix + name, "in": "body", "schema": field}
        yield from _list_fields(field, f"{prefix}{name}.")


def _make_table(parameters: Iterable[Mapping[str, Any]]) -> str:
    """Return a table of parameters in Markdown; an empty text if there are none."""
    rows = []
    for parameter in parameters:
        schema = parameter["schema"]
        value = describe_value(schema) + ", in the path" * (parameter["in"] == "path")
        meaning = parameter.get("description") or schema["description"]
        default = schema.get("default")
        is_shown = default not in (None, "") and not isinstance(default, list | dict)
        shown = f" `{json.dumps(default)}`".replace('"', "") if is_shown else ""
        sentence = (meaning[0].upper() + meaning[1:].rstrip(".") + ".").replace("|", "\\|")
        rows.append(f"| `{parameter['name']}` | {value} | {sentence} |{shown} |\n")
    head = "\n| name | value | meaning | default |\n| --- | --- | --- | --- |\n"
    return head + "".join(rows) if rows else ""


def describe_value(schema: Mapping[str, Any]) -> str:
    """Return the values that a parameter or field may have, in words."""
    kind = schema | next(one for one in schema.get("anyOf", [schema]) if one["type"] != "null")
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if "prefixItems" in kind:
        return f"two {kind['prefixItems'][0]['type']}s"
    name = _TYPES.get(kind["type"], kind["type"])
    if kind["type"] == "array" and "items" in kind:
        name = f"list of {_TYPES.get(kind['items'].get('type', 'object'), kind['items'].get('type'))}s"
    size = kind.get("maxItems", kind.get("maxProperties"))
    limits = (
        ("above", kind.get("exclusiveMinimum"), ""), ("at least", kind.get("minimum"), ""),
        ("at most", kind.get("maximum"), ""), ("at most", size, " entries"),
    )  # fmt: skip
    return ", ".join([name, *(f"{words} {limit:,.12g}{unit}" for words, limit, unit in limits if limit is not None)])


def _describe_answers(responses: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the successful answer and the errors of a request, with links to the sections about them."""
    (success,) = (status for status in responses if status.startswith("2"))
    answer = _OBJECT.sub(_link_object, responses[success]["description"])
    errors = sorted(responses.keys() - {success})
    return f"Status {success}: {answer}." + (f" [Errors](#errors): {', '.join(errors)}." if errors else "")


def _link_object(words: re.Match[str]) -> str:
    if words[4]:
        return link(words[4])
    plural = f"{words[3]}es" if words[3].endswith("ch") else f"{words[3]}s"
    return f"{words[1]} [{words[2]}](#{plural})"


def describe_descriptors() -> str:
    """Return a table of the descriptors in songs."""
    rows = "".join(f"| `{name}` | {descriptor.about} |\n" for name, descriptor in DESCRIPTORS.items())
    return f"| descriptor | meaning |\n| --- | --- |\n{rows}"


PAGES: dict[Path, Mapping[str, Callable[[], str]]] = {
    FOLDER / "commands.md": {"commands": describe_commands},
    FOLDER / "http_reference.md": {"requests": describe_requests, "descriptors": describe_descriptors},
    PAGE: {"hooks": describe_hooks},
}
"""The pages, each with the texts of its generated parts, keyed by their names."""


def make_page(path: Path) -> str:
    """Return the text of a page."""
    return fill_blocks(path, {name: describe() for name, describe in PAGES[path].items()})


def main() -> None:
    """Write all pages."""
    for path in PAGES:
        path.write_text(make_page(path), encoding="utf-8")


if __name__ == "__main__":
    main()
