"""The pages of the site, which ``python -m docs.site`` writes for `make docs`, and its additions to Markdown.

Pages have the same paths as in the checkout, so that one link works there, on GitHub and on the site.
"""

import json
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "audio": ("load", "Sound", "analyze_sound", "describe"),
    "codebook": ("Codebook",),
    "demo": ("plan_collection", "write_song", "write_listening"),
    "evaluation": ("query_scores", "bootstrap_pairs", "ArtistSplit"),
    "gaussians": ("GaussianEmbedding", "fit_embedding"),
    "hashing": ("RankHash",),
    "kernels": ("ppk_kernel", "gmm_kernel", "harmony_kernel", "rhythm_kernel"),
    "library": ("Library", "Song"),
    "metric": ("MLR", "MLRCV", "MultipleKernelMLR", "GMML", "LGMML", "WCCN"),
    "mixtures": ("SongMixtures", "fit_mixtures"),
    "order": ("PartialOrderEmbedding", "LinearPartialOrderEmbedding"),
    "playlist": ("PlaylistModel", "Playlist", "Hypergraph", "build_edges"),
    "relevance": ("Relevance",),
    "search": ("tune", "ExactIndex", "SpillForest", "HammingIndex", "MutualProximity"),
}
"""Packages whose stubs list what is public, with the names that their pages begin with."""
EXPLORER = (
    "refresh.refresh", "refresh.learned_model", "refresh.model_catalogue", "refresh.map_layout", "snapshot.snapshot",
    "search.query", "playlists.walk", "evaluation.quality", "requests.filters", "requests.playlist",
    "requests.search", "requests.training",
)  # fmt: skip
"""Modules of musicsim.explorer that scripts begin with."""
_DOCUMENTS = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "experiments/README.md", "musicsim/**/README.md",
)  # fmt: skip
_LINKED = (
    "CITATION.cff", "LICENSE", "docker/Dockerfile", "docker/compose.yaml", "docker/musicsim.service",
    "docs/images/*", "docs/site.css", "docs/tour/*",
    "musicsim/hooks.py", "musicsim/public.py", "musicsim/ui/assets/icon.svg",
)  # fmt: skip
_ROLE = r":(?:attr|class|data|exc|func|meth|mod|obj):`~?([\w.]+)`"
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)  # of a data frame; the site has its own for tables
_CODE_PRIORITY = 190  # of the package markdown, for code in backticks


def write_pages(folder: Path) -> None:
    """Empty a folder, then write all pages and the files that they link to; links to notebooks lead to their pages."""
    if folder.exists():
        shutil.rmtree(folder)
    for path in _find(_LINKED):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    for name, text in _make_pages():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text.replace(".ipynb)", ".md)"), encoding="utf-8")


def draw_equation(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """Return an equation as MathML, which browsers draw without a script."""
    return f'<div class="{css_class}" title="{escape(source)}">{convert(source, display="block")}</div>'


class Roles(Extension):
    """Replace Sphinx's roles in docstrings; a full name becomes a link if it has a page."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Look for roles before code: each contains some."""
        md.inlinePatterns.register(_RoleProcessor(_ROLE, md), "role", _CODE_PRIORITY + 1)


class _RoleProcessor(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802
        name = m[1]
        code = Element("code")
        code.text = AtomicString(name.rpartition(".")[2])
        if not name.startswith("musicsim."):
            return code, m.start(), m.end()
        link = Element("autoref", identifier=name, optional="")
        link.append(code)
        return link, m.start(), m.end()


def _find(patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(ROOT.glob(pattern))


def _make_pages() -> Iterator[tuple[str, str]]:
    for path in _find(_DOCUMENTS):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    for path in _find(("notebooks/*.ipynb",)):
        yield f"notebooks/{path.stem}.md", _convert_notebook(path)
    for package in PACKAGES:
        yield f"docs/api/{package}.md", _describe_package(package)
    yield "docs/api/explorer.md", "# musicsim.explorer\n\n" + "\n".join(map(_describe_explorer_module, EXPLORER))


def _convert_notebook(path: Path) -> str:
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += map(_convert_output, cell.get("outputs", ()))
    return "\n\n".join(parts)


def _convert_output(output: dict[str, Any]) -> str:
    data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
    if "image/png" in data:
        return f'<img alt="Figure of this cell" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/html" in data:
        return _STYLE.sub("", data["text/html"])
    return f"```text\n{''.join(output.get('text', '')) or data['text/plain']}\n```"


def _describe_package(package: str) -> str:
    stub = (ROOT / "musicsim" / package / "__init__.pyi").read_text(encoding="utf-8")
    names = dict.fromkeys([*PACKAGES[package], *re.findall(r" as (\w+)$", stub, re.MULTILINE)])
    parts = [f"# musicsim.{package}", f"::: musicsim.{package}\n    options:\n      members: false"]
    return "\n\n".join([*parts, *(_describe_name(f"musicsim.{package}.{name}") for name in names)]) + "\n"


def _describe_name(name: str) -> str:
    return f"::: {name}\n    options:\n      show_root_heading: true\n      show_root_toc_entry: true"


def _describe_explorer_module(name: str) -> str:
    return (
        f"::: musicsim.explorer.{name}\n    options:\n      show_root_heading: true\n      show_root_full_path: true\n"
        "      show_root_toc_entry: true\n      show_signature_annotations: true\n"
    )


if __name__ == "__main__":
    write_pages(ROOT / "build" / "pages")
