"""The generated parts of documents: between ``<!-- generated: NAME -->`` and ``<!-- end -->``."""

import re
from collections.abc import Mapping
from pathlib import Path

_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_blocks(page: Path, texts: Mapping[str, str]) -> str:
    """Return the text of a document with its generated parts replaced by these texts, keyed by name."""
    return _BLOCK.sub(lambda block: f"{block[1]}{texts[block[2]]}{block[3]}", page.read_text(encoding="utf-8"))
