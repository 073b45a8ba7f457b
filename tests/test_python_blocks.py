"""Pages of methods begin with a program that needs nothing else, and show what it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.printed import assert_same

CHECKOUT = Path(__file__).parents[1]
# Numbers of blocks that run one after another; the others need the reader's data. tests/test_printed_blocks.py runs
# those of the README and of the pages for scripts.
METHODS = dict.fromkeys(
    (
        "descriptors", "evaluation", "factors", "hamming", "hashing", "kernels", "lgmml", "neighbors", "order",
        "playlist_walk", "pooling", "sound",
    ),
    1,
) | {"mlr": 5}  # fmt: skip
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


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
