"""The documentation as a site: every page is reached, every link leads somewhere, nothing comes from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """The HTML of every page by its address, built as `make docs` does: a warning, as of a dead link, fails it."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = sorted(folder.rglob("*.html"))
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_every_page_of_docs_and_every_notebook_is_in_it(pages):
    documents = {f"docs/{path.stem}/index.html" for path in (CHECKOUT / "docs").glob("*.md")}
    notebooks = {f"notebooks/{path.stem}/index.html" for path in (CHECKOUT / "notebooks").glob("*.ipynb")}
    assert (documents | notebooks) - pages.keys() == set()


def test_nothing_is_loaded_from_elsewhere(pages):
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    assert {address for html in pages.values() for address in loaded.findall(html)} == set()


def test_what_docstrings_name_is_a_link_and_equations_are_drawn(pages):
    assert 'href="#musicsim.metric.MLR"' in pages["docs/api/metric/index.html"]
    assert "MLRCV" in pages["docs/api/metric/index.html"]
    assert "<math" in pages["docs/mlr/index.html"]
    left = {name for name, html in pages.items() if re.search(r":(?:class|func|meth|attr|data|mod):<code>", html)}
    assert left == set()
