"""Tell which pictures of the pages are older than the code that they show: ``python -m docs.pictures --check``.

``docs/images/pictures.json`` lists for each picture the code that determines it, and a hash of this code from when the
picture was taken. To keep a picture after a change that it does not show: ``python -m docs.pictures --accept NAME``.
"""

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_MANIFEST = Path("docs", "images", "pictures.json")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def read_manifest(checkout: Path = ROOT) -> dict[str, Any]:
    """Return the globs of each part of the pages, and the parts and the hash of each picture."""
    return json.loads((checkout / _MANIFEST).read_text(encoding="utf-8"))


def find_code(checkout: Path, name: str) -> list[Path]:
    """Return the files that determine a picture, sorted; each glob must match."""
    manifest = read_manifest(checkout)
    found = set()
    for part in manifest["pictures"][name]["shows"]:
        for pattern in manifest["parts"][part]:
            matches = set(checkout.glob(pattern))
            if not matches:
                raise SystemExit(f"{_MANIFEST}: {pattern}, of the part {part}, matches no file: correct the pattern.")
            found |= matches
    return sorted(found)


def find_stale(checkout: Path = ROOT) -> list[str]:
    """Return the names of the pictures whose code has changed."""
    pictures = read_manifest(checkout)["pictures"]
    return [name for name, picture in pictures.items() if picture["hash"] != _hash_code(checkout, name)]


def accept(names: list[str], checkout: Path = ROOT) -> list[str]:
    """Record that pictures show the present code; return their names. Names may be patterns, such as ``tour/*``."""
    manifest = read_manifest(checkout)
    accepted = []
    for pattern in names:
        matches = [name for name in manifest["pictures"] if fnmatch(name, pattern)]
        if not matches:
            raise SystemExit(f"{_MANIFEST} has no picture {pattern}: add it, with the parts that it shows.")
        accepted += matches
    for name in accepted:
        manifest["pictures"][name]["hash"] = _hash_code(checkout, name)
    target = checkout / _MANIFEST
    part = target.with_suffix(".part")
    part.write_text(_format(manifest), encoding="utf-8")
    part.replace(target)
    return accepted


def _format(manifest: dict[str, Any]) -> str:
    """Return JSON with one line per part and picture, so that changes of pictures merge."""
    groups = [
        f"  {json.dumps(group)}: {{\n"
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        + "\n  }"
        for group, entries in manifest.items()
    ]
    return "{\n" + ",\n".join(groups) + "\n}\n"


def _hash_code(checkout: Path, name: str) -> str:
    hashed = hashlib.sha256()
    for path in find_code(checkout, name):
        code = _code_of(path.read_text(encoding="utf-8"), path.suffix)
        hashed.update(f"{path.relative_to(checkout).as_posix()}\0{code}\0".encode())
    return hashed.hexdigest()[:16]


@cache
def _code_of(text: str, suffix: str) -> str:
    """Return the code of a file; most files determine many pictures."""
    return "".join(_dump(ast.parse(text))) if suffix == ".py" else text


def _dump(node: object) -> Iterator[str]:
    """Yield a syntax tree without docstrings, comments and empty fields; ast.dump differs between Python versions."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for field, value in ast.iter_fields(node):
            is_documented = field == "body" and isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None
            shown = value[1:] if is_documented else value
            if shown is not None and shown != []:
                yield f"({field}="
                yield from _dump(shown)
                yield ")"
    elif isinstance(node, list):
        for item in node:
            yield from _dump(item)
            yield ","
    else:
        yield repr(node)


def main() -> None:
    """Print the pictures that are out of date, or accept some."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="print pictures older than their code; exit code 1 if any")
    action.add_argument("--accept", nargs="+", metavar="NAME", help="record that these pictures are up to date")
    options = parser.parse_args()
    if options.accept:
        accept(options.accept)
    elif stale := find_stale():
        print("\n".join(stale))  # noqa: T201
        sys.exit("The code of these pictures changed: take them again (make pictures), or look at them and --accept.")


if __name__ == "__main__":
    main()
