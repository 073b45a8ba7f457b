"""Code blocks of the README, *Listen*, *Connect* and *Start here* run as printed, in their order, on forty songs.

The music is real if MUSICSIM_REAL_MUSIC names a folder of recordings, else composed; the servers are real.
"""

import os
import re
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.printed import assert_shows
from tests.reader import Ended, Reader, build_home, find_answer, reading

CHECKOUT = Path(__file__).parents[1]
# The other two pages are generated: tests/test_references.py compares them with the program.
GENERATED = ("commands.md", "http_reference.md")
PAGES = [
    "README.md",
    *sorted(
        path.relative_to(CHECKOUT).as_posix()
        for folder in ("listen", "connect")
        for path in (CHECKOUT / "docs" / folder).glob("*.md")
        if path.name not in GENERATED
    ),
    "docs/research/start_here.md",
]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```\n", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"\s*(?:The last line prints:|It prints:)?\s*^ *```text\n(.*?)^ *```\n", re.DOTALL | re.MULTILINE)

# A page and the beginning of its block, and why it does not run here.
REASONS = {
    ("README.md", "make app"): "installs packages from an index: `make clean-root` runs it",
    ("README.md", "make dist"): "installs packages from an index: tests/test_wheel.py builds the wheel",
    ("docs/listen/queries.md", "fast dark -metal"): "words for a search box: tests/explorer/test_words.py",
    ("docs/connect/extensions.md", '"""Long songs'): "a file: tests/test_own_extensions.py runs it",
    ("docs/connect/extensions.md", "[build-system]"): "a file: tests/test_own_extensions.py builds it",
    ("docs/connect/extensions.md", "from streamlit.testing"): "a file: tests/test_own_extensions.py runs it",
    ("docs/connect/extensions.md", '"""Plays from'): "a file: tests/test_own_extensions.py runs it",
    ("docs/connect/mpd.md", ".venv/bin/pip install"): "installs packages from an index",
    ("docs/connect/servers.md", "musicsim server add home https://"): "needs a server on another machine",
    ("docs/research/start_here.md", "python3 -m pip"): "installs packages: tests/test_bare_environment.py does",
}
# Blocks that are files: where the reader saves them, and a command that reads them.
FILES = {
    ("docs/listen/files.md", "# rough versions"): ("Music/.musicsimignore", "musicsim scan"),
    ("docs/connect/beets.md", "plugins: musicsim"): (".config/beets/config.yaml", "beet similar --help"),
}
UNTIL_INTERRUPTED = ("musicsim app", "musicsim mpd keep-filled")
PROGRAMS = {"docs/connect/mpd.md": "mpd", "docs/connect/http.md": "curl", "docs/listen/search.md": "curl"}


@dataclass(frozen=True)
class Block:
    """A code block, and the output that the page shows after it."""

    page: str
    line: int
    language: str
    text: str
    shown: str

    @property
    def key(self) -> tuple[str, str]:
        """Its page and its beginning in the tables, or two empty texts."""
        keys = ({**REASONS, **FILES}).keys()
        return next(((p, start) for p, start in keys if p == self.page and self.text.startswith(start)), ("", ""))


def read_blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page, without those of its output."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):
        if fence[2] != "text":
            output = OUTPUT.match(text, fence.end())
            line = text.count("\n", 0, fence.start()) + 1
            yield Block(page, line, fence[2], textwrap.dedent(fence[3]), textwrap.dedent(output[1]) if output else "")


BLOCKS = [block for page in PAGES for block in read_blocks(page)]


class Reading:
    """A page that is read from its beginning: a block runs after those above it."""

    def __init__(self, page: str, reader: Reader) -> None:
        self._left = [block for block in BLOCKS if block.page == page and block.key not in REASONS]
        self._reader, self._ended = reader, {}

    def run(self, block: Block) -> Ended:
        """Run all blocks up to this one that have not run yet; return its end."""
        while block not in self._ended:
            above = self._left.pop(0)
            self._ended[above] = self._run(above)
        return self._ended[block]

    def _run(self, block: Block) -> Ended:
        if block.key in FILES:
            place, command = FILES[block.key]
            with (self._reader.home / place).open("a", encoding="utf-8") as file:
                file.write(block.text)
            return self._reader.run(command)
        if block.language == "python":
            return self._reader.run_python(block.text)
        is_endless = block.text.startswith(UNTIL_INTERRUPTED)
        return self._reader.run(block.text, told=find_answer(block.text), until_interrupted=is_endless)


@pytest.fixture(scope="module")
def built(made_once) -> Path:
    """Build the home folder of a reader who has added music."""
    return made_once("reader", build_home)


@pytest.fixture(scope="module")
def page(request, built, tmp_path_factory) -> Iterator[Reading]:
    """Open a page on a machine of its own."""
    program = PROGRAMS.get(request.param)
    if program and shutil.which(program) is None:
        if os.environ.get("CI"):
            pytest.fail(f"{program} is not installed")
        pytest.skip(f"{program} is not installed")
    with reading(request.param, built, tmp_path_factory.mktemp("home") / "reader") as reader:
        yield Reading(request.param, reader)


def test_every_reason_and_file_has_one_block():
    assert sorted(block.key for block in BLOCKS if block.key[0]) == sorted({**REASONS, **FILES})


@pytest.mark.printed
@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "block"),
    [
        pytest.param(
            block.page,
            block,
            id=f"{block.page}:{block.line}",
            marks=[pytest.mark.skip(reason=REASONS[block.key])] if block.key in REASONS else [],
        )
        for block in BLOCKS
    ],
    indirect=["page"],
)
def test_block_runs_as_printed(page, block):
    ended = page.run(block)
    assert not ended.problem, ended.problem
    assert "\\n" not in ended.printed
    assert_shows(ended.printed, block.shown)
