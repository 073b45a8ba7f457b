"""Reference pages are up to date, and all commands, options and environment variables in documents exist."""

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from docs.references import PAGES, load_commands, make_page
from musicsim.audio import DESCRIPTORS
from musicsim.explorer.rendering import render_model, render_result, render_song
from musicsim.extensions.albums.rendering import render_album

CHECKOUT = Path(__file__).parents[1]
DOCUMENTS = [
    CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted(CHECKOUT.glob("docs/**/*.md"))
]  # fmt: skip
FENCE = re.compile(r"^ *(```+)(\w*)[^\n]*\n(.*?)^ *\1", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
NO_SHELL = {"ini", "json", "mermaid", "nginx", "python", "toml", "yaml"}
# before the name of a program: an assignment, a field of a crontab, or a program that runs others
PREFIX = re.compile(r"[A-Za-z_]+=\S*|[\d*/,-]+|\$|exec|nice|nohup|sudo|time")
PROGRAM = re.compile(r"(?:\w+=)?(?:\S*/)?musicsim")
END = re.compile(r"[|;&<>()]+")
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*|\[.*|<.*|…|\.\.\.")
FLAG = re.compile(r"--?[A-Za-z][\w-]*")
VARIABLE = re.compile(r"\bMUSICSIM_[A-Z_]*[A-Z]\b")
OF_OTHERS = {"--force"}  # options of other programs that documents name alone: of pipx and uv
SCRIPTS = ("benchmarks", "docs", "experiments", "tests", "torture")
READERS = ("musicsim", "benchmarks", "tests")  # of environment variables


def list_commands(command: Any, name: str = "musicsim") -> Iterator[tuple[str, Any]]:
    """Yield a command and all of its subcommands, each with its full name."""
    yield name, command
    for subcommand in getattr(command, "commands", {}).values():
        yield from list_commands(subcommand, f"{name} {subcommand.name}")


@cache
def flags_of_commands() -> Mapping[str, set[str]]:
    """Return the options of each command and group, keyed by the command's full name."""
    return {
        name: {"-h", "--help"}.union(*({*one.opts, *one.secondary_opts} for one in command.params))
        for name, command in list_commands(load_commands())
    }


@cache
def flags_of_scripts() -> set[str]:
    """Return the options that scripts outside of the package define."""
    sources = (path.read_text(encoding="utf-8") for folder in SCRIPTS for path in (CHECKOUT / folder).rglob("*.py"))
    define = re.compile(r"add(?:_argument|option)\(\s*[\"'](--[\w-]+)")
    return {flag for source in sources for flag in define.findall(source)}


def read_code(text: str) -> Iterator[str]:
    """Yield the lines of code in a document that may contain commands."""
    for _, language, code in FENCE.findall(text):
        if language not in NO_SHELL:
            yield from code.replace("\\\n", " ").splitlines()
    yield from (" ".join(code.split()) for code in INLINE.findall(FENCE.sub("", text)))


def split_line(line: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>()")
    words.whitespace_split = True
    command: list[str] = []
    try:
        for word in words:
            if END.fullmatch(word):
                yield command
                command = []
            else:
                command.append(word)
    except ValueError:  # an apostrophe in prose
        pass
    yield command


def find_arguments(command: list[str]) -> list[str] | None:
    """Return the words after the name of the program; None if a command runs another program."""
    for place, word in enumerate(command):
        if PROGRAM.fullmatch(word):
            return command[place + 1 :]
        if not PREFIX.fullmatch(word):
            return None
    return None


def find_faults(text: str) -> Iterator[str]:
    """Yield each command or option in a document that does not exist; an option alone may be of any command."""
    known = OF_OTHERS.union(flags_of_scripts(), *flags_of_commands().values())
    for line in read_code(text):
        if line.startswith("--"):
            yield from (f"{flag} in {line!r}" for flag in re.findall(r"--[\w-]+", line) if flag not in known)
        for command in split_line(line):
            yield from (f"{word} in {line!r}" for word in check_arguments(find_arguments(command) or []))


def check_arguments(words: list[str]) -> Iterator[str]:
    """Yield each of a command's words that should be a subcommand or an option, but is not."""
    flags, name = flags_of_commands(), "musicsim"
    for word in words:
        flag = FLAG.match(word.lstrip("["))
        is_group = any(other.startswith(f"{name} ") for other in flags)
        if flag is not None:
            if flag[0] not in flags[name]:
                yield flag[0]
        elif is_group and not PLACEHOLDER.fullmatch(word):
            name = f"{name} {word.rstrip('.,:')}"
            if name not in flags:
                yield word
                return


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_reference_pages_are_up_to_date(path):
    assert path.read_text(encoding="utf-8") == make_page(path), "run `python docs/references.py`"


class Named:
    """Any object: each attribute has its own name as its value."""

    def __getattr__(self, name: str) -> str:
        return name


def read_fields(title: str) -> dict[str, str]:
    """Return the meanings of the fields of an object in answers, keyed by name."""
    page = (CHECKOUT / "docs" / "connect" / "http_reference.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))


def test_tables_of_answers_list_every_field():
    song, result = render_song(Named()), render_result(Named(), 1, None, "")
    assert list(read_fields("Songs")) == list(song)
    assert read_fields("Songs").items() >= {name: one.about for name, one in DESCRIPTORS.items()}.items()
    assert list(read_fields("Results")) == [name for name in result if name not in song]
    assert list(read_fields("Albums")) == list(render_album(Named()))
    assert list(read_fields("Models")) == [*render_model(Named(), {}), "settings"]  # only the owner gets the last one


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_documented_commands_exist(path):
    assert list(find_faults(path.read_text(encoding="utf-8"))) == []


def test_documented_variables_are_read():
    sources = (path.read_text(encoding="utf-8") for folder in READERS for path in (CHECKOUT / folder).rglob("*.py"))
    read = {name for source in sources for name in re.findall(rf"[\"']({VARIABLE.pattern})[\"']", source)}
    named = {(path.name, name) for path in DOCUMENTS for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    assert {(page, name) for page, name in named if name not in read} == set()


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("`musicsim add ~/Music --retry`", []),
        ("`musicsim add ~/Music --again`", ["--again"]),
        ("`musicsim similar 12 --no-hub-reduction -k 5 --loudness -30 -18`", []),
        ("`musicsim models use NAME` and `musicsim models COMMAND`", []),
        ("`musicsim models choose NAME`", ["choose"]),
        ("`--retry` and `--retrain`", ["--retrain"]),
        ("```\n$ .venv/bin/musicsim app --public \\\n  --port 1 --ports 2   # --nothing\n```", ["--ports"]),
        ("```\n30 4 * * * musicsim server refresh --all\n```", ["--all"]),
        ("```sh\nls && MUSICSIM_NICE=5 musicsim scan --deep | less\n```", ["--deep"]),
        ("```python\nfrom musicsim import nothing\n```", []),
        ("`pip install musicsim --upgrade`, `useradd musicsim`, `import musicsim`", []),
        ("[OPTIONS]: `musicsim mpd queue [--play] [--plays]`", ["--plays"]),
    ],
)
def test_wrong_commands_are_found(text, faults):
    assert [fault.partition(" in ")[0] for fault in find_faults(text)] == faults
