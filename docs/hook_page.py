"""The page about hooks, from the Protocols and the record in :mod:`musicsim.hooks`."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from musicsim import hooks

PAGE = Path(__file__).resolve().parent / "connect" / "hooks.md"

_PARTS = ("Command", "JobKind", "Section")  # records in the fields of the record
_OF_MUSICSIM = ("package", "origin")  # fields that musicsim sets
_ROLE = re.compile(r":\w+:`~?([\w.]+)`")


def describe_hooks() -> str:
    """Return the generated part of the page: the record, the hooks, and the objects that hooks return."""
    classes = {node.name: node for node in ast.parse(inspect.getsource(hooks)).body if isinstance(node, ast.ClassDef)}
    names = {protocol.__name__: hook for protocol, hook in hooks.HOOKS.items()}
    protocols = [node for node in classes.values() if any(ast.unparse(base) == "Protocol" for base in node.bases)]
    order = list(classes)
    first_hook = order.index("Hook")
    text = "## The record\n\n"
    text += _describe_record(classes["Extension"])
    text += "".join(_describe_record(classes[name]) for name in _PARTS)
    text += "The functions that it registers:\n\n"
    text += "".join(_describe(node) for node in protocols if order.index(node.name) < first_hook)
    text += "\n## All hooks\n\n"
    for name, hook in names.items():
        callers = " and ".join(f"`{caller}`" for caller in hook.callers)
        text += f"### `{hook.name}`\n\nCalled by {callers}.\n\n{_describe(classes[name])}\n"
    text += "## Objects that hooks return\n\n"
    text += "".join(
        _describe(node) for node in protocols if order.index(node.name) > first_hook and node.name not in names
    )
    return re.sub(r"\n{3,}", "\n\n", text).rstrip("\n") + "\n"


def _describe_record(record: ast.ClassDef) -> str:
    """Return a table of a record's fields."""
    text = f"| field of `{record.name}` | type | meaning |\n|---|---|---|\n"
    for field, about in _describe_fields(record):
        text += f"| `{ast.unparse(field.target)}` | `{ast.unparse(field.annotation)}` | {about} |\n"
    return text + "\n"


def _describe_fields(record: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, str]]:
    """Yield each field of the record with its documentation; a field without any is an error."""
    for field, about in zip(record.body, record.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and field.target.id not in _OF_MUSICSIM
        ):
            if not (isinstance(about, ast.Expr) and isinstance(about.value, ast.Constant)):
                raise ValueError(f"the field {ast.unparse(field.target)} has no documentation.")
            yield field, _clean(str(about.value.value))


def _describe(protocol: ast.ClassDef) -> str:
    """Return the signature of a Protocol's call, or those of its methods, and its documentation."""
    about = _clean(ast.get_docstring(protocol) or "")
    members = [node for node in protocol.body if isinstance(node, ast.FunctionDef)]
    if [member.name for member in members] == ["__call__"]:
        return f"- `{protocol.name}`: `{_signature(members[0], 'function')}`\n\n  {about}\n\n"
    text = f"- `{protocol.name}`: {about}\n"
    for member in members:
        said = _clean(ast.get_docstring(member) or "")
        text += f"    - `{_signature(member, member.name)}`" + (f": {said}" if said else "") + "\n"
    return text + "\n"


def _signature(function: ast.FunctionDef, name: str) -> str:
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ").replace(", /", "")
    returned = ast.unparse(function.returns) if function.returns else "None"
    is_property = any(ast.unparse(decorator) == "property" for decorator in function.decorator_list)
    return f"{name}: {returned}" if is_property else f"{name}({arguments}) -> {returned}"


def _clean(text: str) -> str:
    """Return documentation as one line of Markdown."""
    return _ROLE.sub(r"`\1`", " ".join(text.split())).replace("``", "`")
