"""The documentation as a site: every page is linked, no link is dead, no resource comes from another site."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """Build the site as `make docs` does; return the HTML of every page. A warning, such as a dead link, fails it."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = sorted(folder.rglob("*.html"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


@pytest.mark.long
def test_site_contains_all_documents_and_notebooks(pages):
    documents = {f"{path.relative_to(CHECKOUT).with_suffix('')}/index.html" for path in (CHECKOUT / "docs").rglob("*.md")}
    notebooks = {f"notebooks/{path.stem}/index.html" for path in (CHECKOUT / "notebooks").glob("*.ipynb")}
    assert (documents | notebooks) - pages.keys() == set()


def test_pages_load_no_external_resources(pages):
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    assert {address for html in pages.values() for address in loaded.findall(html)} == set()


def test_docstring_references_and_equations_are_rendered(pages):
    assert 'href="#musicsim.metric.MLR"' in pages["docs/api/metric/index.html"]
    assert "MLRCV" in pages["docs/api/metric/index.html"]
    assert "<math" in pages["docs/research/mlr/index.html"]
    left = {name for name, html in pages.items() if re.search(r":(?:class|func|meth|attr|data|mod):<code>", html)}
    assert left == set()
