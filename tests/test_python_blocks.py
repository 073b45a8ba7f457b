"""Python on the pages for scripts and notebooks runs as printed, on a library of generated songs.

Pages of methods begin with a program that needs nothing else, and show what it prints.
"""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.printed import assert_same
from tests.sounds import KINDS, write_song

CHECKOUT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/connect/python.md", "docs/research/start_here.md")
# Numbers of blocks that run one after another; the others need the reader's data.
METHODS = dict.fromkeys(
    (
        "descriptors", "evaluation", "factors", "hamming", "hashing", "kernels", "lgmml", "neighbors", "order",
        "playlist_walk", "pooling", "sound",
    ),
    1,
) | {"mlr": 5}  # fmt: skip
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_page_run_as_printed(page, tmp_path, monkeypatch):
    for number in range(16):
        kind = KINDS[number % 2]  # two genres that sound different
        tags = {"title": f"Song {number}" if number else "Tides", "artist": f"Artist {number // 2}", "genre": kind}
        write_song(tmp_path / "Music" / f"{number}.flac", kind, number, 21.0, **tags)
    (tmp_path / "some.flac").write_bytes((tmp_path / "Music" / "1.flac").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```", (CHECKOUT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        if "plays" not in names and "from_plays(plays" in block:
            continue  # the reader's own matrix
        exec(compile(block, page, "exec"), names)
    lib = names["lib"]
    assert {"kind", "in_use"} <= set(lib.models())
    assert "fitted" in lib.models().kind.tolist()
    lib.close()


@pytest.mark.long
@pytest.mark.parametrize(("page", "n_blocks"), METHODS.items(), ids=METHODS)
def test_blocks_of_method_run_and_print_what_the_page_shows(page, n_blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((CHECKOUT / "docs" / "research" / f"{page}.md").read_text(encoding="utf-8"))[:n_blocks]
    assert len(blocks) == n_blocks
    assert blocks[0][1], "the page shows what its example prints"
    names: dict[str, object] = {}
    for code, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, page, "exec"), names)
        if shown:
            assert_same(printed.getvalue(), shown)
