"""Additions to mkdocs for `make docs`: the selection of pages, pages of the notebooks and the API, and equations.

Pages have the same paths as in the checkout, so that one link works there, on GitHub and on the site.
"""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "audio", "codebook", "demo", "evaluation", "gaussians", "hashing", "kernels", "library", "metric", "mixtures",
    "order", "playlist", "relevance", "search",
)  # fmt: skip
"""Packages whose stubs list what is public."""
EXPLORER = (
    "refresh.refresh", "refresh.learned_model", "refresh.model_catalogue", "refresh.map_layout", "snapshot.snapshot",
    "search.query", "playlists.walk", "evaluation.quality", "requests.filters", "requests.playlist",
    "requests.search", "requests.training",
)  # fmt: skip
"""Modules of musicsim.explorer that scripts begin with."""
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "experiments/README.md", "musicsim/**/README.md")
_LINKED = (
    "CITATION.cff", "LICENSE", "docker/Dockerfile", "docs/images/*", "docs/site.css", "docs/tour/*",
    "musicsim/hooks.py", "musicsim/public.py", "musicsim/ui/assets/icon.svg",
)  # fmt: skip
_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|obj):<code>~?([\w.]+)</code>")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Follow GitHub: a fence called math becomes an equation, and headings have the same anchors."""
    fences = [{"name": "math", "class": "math", "format": _drawn}]
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": fences}
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Use files of the checkout instead of those below docs, and write the pages of notebooks and packages."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
    for pattern in (*_PAGES, *_LINKED):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    written = {f"notebooks/{path.stem}.md": _notebook(path) for path in (ROOT / "notebooks").glob("*.ipynb")}
    written |= {f"docs/api/{package}.md": _package(package) for package in PACKAGES}
    written["docs/api/explorer.md"] = "# musicsim.explorer\n\n" + "\n".join(map(_explorer_module, EXPLORER))
    for name, text in written.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Change links to notebooks into links to their pages."""
    return markdown.replace(".ipynb)", ".md)")


def on_page_content(html: str, **_: Any) -> str:
    """Replace Sphinx's roles in docstrings; a full name becomes a link if it has a page."""
    return _ROLE.sub(_reference, html)


def _reference(role: re.Match[str]) -> str:
    name = role[1]
    code = f"<code>{name.rpartition('.')[2]}</code>"
    return f'<autoref optional identifier="{name}">{code}</autoref>' if name.startswith("musicsim.") else code


def _drawn(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """Return an equation as MathML, which browsers draw without a script."""
    return f'<div class="{css_class}" title="{escape(source)}">{convert(source, display="block")}</div>'


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for text, kind in texts)


def _package(package: str) -> str:
    stub = (ROOT / "musicsim" / package / "__init__.pyi").read_text(encoding="utf-8")
    names = ", ".join(re.findall(r" as (\w+)$", stub, re.MULTILINE))
    return f"# musicsim.{package}\n\n::: musicsim.{package}\n    options:\n      members: [{names}]\n"


def _explorer_module(name: str) -> str:
    return (
        f"::: musicsim.explorer.{name}\n    options:\n      show_root_heading: true\n      show_root_full_path: true\n"
        "      show_root_toc_entry: true\n      show_signature_annotations: true\n"
    )
