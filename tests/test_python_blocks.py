"""Python on the pages for scripts and notebooks runs as printed, on a library of generated songs."""

import re
from pathlib import Path

import pytest

from tests.sounds import KINDS, write_song

CHECKOUT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/connect/python.md", "docs/research/start_here.md")


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
