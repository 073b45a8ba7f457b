"""Every hook is documented, called where its page says, and implemented with its signature."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from musicsim.hooks import HOOKS
from musicsim.registry import extensions

CHECKOUT = Path(__file__).parents[1]
NAMES = {protocol.__name__: hook for protocol, hook in HOOKS.items()}


def find_calls() -> dict[str, set[str]]:
    """Return the modules that load each hook, keyed by the argument of ``load_hooks``."""
    calls = defaultdict(set)
    for path in (CHECKOUT / "musicsim").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        module = path.relative_to(CHECKOUT / "musicsim").with_suffix("").as_posix().replace("/", ".")
        for node in ast.walk(ast.parse(text)) if "load_hooks" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "load_hooks":
                calls[ast.unparse(node.args[0])].add(module.removesuffix(".__init__"))
    return dict(calls)


def test_hooks_are_called_where_their_page_says():
    assert find_calls() == {name: set(hook.callers) for name, hook in NAMES.items()}


def test_hooks_have_a_sentence():
    assert [
        name for name, protocol in zip(NAMES, HOOKS, strict=True) if not re.match(r"[A-Z].*\.", protocol.__doc__)
    ] == []


def test_records_name_known_hooks():
    named = {name for extension in extensions() for name in extension.hooks}
    assert named
    assert named <= {hook.name for hook in HOOKS.values()}


def test_page_of_hooks_imports_only_errors():
    """Its imports for mypy point upward, so the import contracts leave them out."""
    code = "import sys, musicsim.hooks; print(*sorted(name for name in sys.modules if name.startswith('musicsim.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"musicsim.extras"}  # by the package itself, before its first module
    assert set(done.stdout.split()) - own == {"musicsim.errors", "musicsim.hooks"}


@pytest.mark.long
def test_implementations_have_the_types_of_their_protocols(tmp_path):
    protocols = {hook.name: protocol.__name__ for protocol, hook in HOOKS.items()}
    targets = []  # with the Protocol that each has to fit
    for extension in extensions():
        package = extension.package
        targets += [(package, extension.hooks[name], protocols[name]) for name in extension.hooks]
        targets += [
            (package, section.target, "DrawFolder" if section.page == "folder" else "DrawSection")
            for section in extension.sections
        ]
        targets += [(package, section.summary, "DrawSection") for section in extension.sections if section.summary]
        targets += [(package, edit, "EditPlaylist") for edit in extension.playlist_edits.values()]
        targets += [(package, extension.routes, "MakeRoutes")] if extension.routes else []
    lines = ["from musicsim import hooks"]
    for n, (package, target, protocol) in enumerate(targets):
        module, _, name = target.partition(":")
        lines += [f"import {package}.{module}", f"x{n}: hooks.{protocol} = {package}.{module}{'.' * bool(name)}{name}"]
    source = tmp_path / "implementations.py"
    source.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", CHECKOUT / "pyproject.toml", source]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
