"""The documentation as a site: every page is linked, no link is dead, no resource comes from another site."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from docs.site import PACKAGES, write_pages

CHECKOUT = Path(__file__).parents[1]
CONFIG = CHECKOUT / "zensical.toml"
PROJECT = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]


class Page(HTMLParser):
    """Anchors of a page, and its links to pages, pictures and other files."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the attributes that name an anchor or a link."""
        self.anchors |= {value for name, value in attrs if name == "id" and value}
        self.links |= {value for name, value in attrs if name in ("href", "src", "srcset") and value}


def find_dead_links(site: Path, pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield page and link of each link to a file or an anchor of the site that does not exist."""
    parsed = {name: Page(html) for name, html in pages.items()}
    for name, page in parsed.items():
        for link in page.links:
            address = urlsplit(urljoin(f"/{name}", link))
            if address.scheme or address.netloc:
                continue
            file = site / unquote(address.path).lstrip("/")
            file = file / "index.html" if file.is_dir() else file
            target = parsed.get(file.relative_to(site).as_posix())
            anchor = unquote(address.fragment)
            if not file.is_file() or (anchor and target and anchor not in target.anchors):
                yield name, link


def list_navigation(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the pages that the navigation names."""
    for entry in entries:
        for value in entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from list_navigation(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site as `make docs` does; return its folder. A warning, such as a dead link to a page, fails it."""
    folder = tmp_path_factory.mktemp("site")
    write_pages(folder / PROJECT["docs_dir"])
    shutil.copy(CONFIG, folder)
    build = [sys.executable, "-m", "zensical", "build", "--config-file", folder / CONFIG.name]
    done = subprocess.run(build, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / PROJECT["site_dir"]


@pytest.fixture(scope="module")
def pages(site) -> dict[str, str]:
    """Return the HTML of every page of the site."""
    found = sorted(site.rglob("*.html"))
    return {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_navigation_contains_every_page_once(tmp_path):
    write_pages(tmp_path)
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")]
    assert sorted(list_navigation(PROJECT["nav"])) == sorted(written)


@pytest.mark.long
def test_site_contains_all_documents_and_notebooks(pages):
    sources = [*(CHECKOUT / "docs").rglob("*.md"), *(CHECKOUT / "notebooks").glob("*.ipynb")]
    folders = [path.parent if path.stem in ("README", "index") else path.with_suffix("") for path in sources]
    assert {f"{folder.relative_to(CHECKOUT).as_posix()}/index.html" for folder in folders} - pages.keys() == set()


def test_links_lead_to_existing_files_and_anchors(site, pages):
    assert sorted(find_dead_links(site, pages)) == []


def test_pages_load_no_external_resources(pages):
    loaded = re.compile(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="((?:https?:)?//[^"]+)"')
    assert {address for html in pages.values() for address in loaded.findall(html)} == set()


def test_docstring_references_and_equations_are_rendered(pages):
    assert 'id="musicsim.metric.MLR"' in pages["docs/api/metric/index.html"]
    assert "MLRCV" in pages["docs/api/metric/index.html"]
    assert 'href="../metric/#musicsim.metric.MLR"><code>MLR</code></a>' in pages["docs/api/explorer/index.html"]
    assert "<math" in pages["docs/research/mlr/index.html"]
    left = {name for name, html in pages.items() if re.search(r":(?:class|func|meth|attr|data|mod):<code>", html)}
    assert left == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_page_of_package_begins_with_its_main_names(pages, package):
    page = pages[f"docs/api/{package}/index.html"]
    names = re.findall(rf'<h2 id="musicsim\.{package}\.(\w+)"', page)
    assert names[: len(PACKAGES[package])] == list(PACKAGES[package])


def test_pages_of_the_tour_lead_to_the_next(pages):
    footer = re.compile(r'<footer class="md-footer">.*', re.DOTALL)
    (_, last), (_, following) = [next(iter(entry.items())) for entry in find_listen_pages()[:2]]
    found = footer.search(pages[f"{last.removesuffix('.md')}/index.html"])
    assert f"../{Path(following).stem}/" in found[0]


def find_listen_pages() -> list[dict[str, str]]:
    """Return the entries of *Listen* in the navigation."""
    return next(entry["Listen"] for entry in PROJECT["nav"] if "Listen" in entry)
