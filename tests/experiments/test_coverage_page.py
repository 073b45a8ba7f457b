"""The page that says where each section of the papers is."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_coverage_page_refers_to_existing_files():
    page = (ROOT / "docs" / "research" / "coverage.md").read_text(encoding="utf-8").partition("\n## ")[2]
    said = re.findall(r"`([^`]+)`", page)
    files = [name for name in said if name.endswith((".py", "/"))]
    modules = [name for name in said if re.fullmatch(r"(experiments|benchmarks)\.\w+", name)]
    assert len(files) > 30
    assert len(modules) > 15
    assert [name for name in files if not any((ROOT / at / name).exists() for at in ("musicsim", "."))] == []
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
