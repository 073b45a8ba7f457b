"""List the texts of the pages: ``python docs/page_texts.py [--since REVISION]`` writes ``docs/page_texts.md``.

For those who edit them: each text once, below the module that shows it, with what it said at an earlier revision.
"""

import argparse
import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

ROOT = Path(__file__).resolve().parents[1]
SHOWN_BY = ("app.py", "pages", "musicsim/ui", "musicsim/explorer")
FIRST = "2d0fcb6"  # the first version, before its texts were edited
ALIKE = 0.35  # cosine of their letters, by threes to fives: below, two texts are not versions of each other

_WORDS = re.compile(r"[A-Za-z]{2}")
_PHRASE = re.compile(r"\w[.,:;?!…”)*]* \S|^[A-Z“*][\w ,…-]+[.?!…:]?$")
_CODE = re.compile(
    r"</?\w|[;{]\s*\w+:|=\{|st-key|data-|^\W*(?:SELECT|from|import) |\\[a-z(\[]"  # HTML, CSS, SQL, patterns
    r"|^https?:|^[a-z]+/[a-z]|^[A-Z_]+$|^\w*[a-z][A-Z]\w*$"  # addresses and names
)


def texts_of(source: str) -> Iterator[str]:
    """Texts of a module that people read, in their order; what is put in when it runs is ``{…}``."""
    tree = ast.parse(source)
    silent: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr):
                silent.add(id(first.value))
        elif isinstance(node, ast.JoinedStr):
            silent.update(id(part) for part in ast.walk(node) if part is not node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith(
            ("re.", "logger.", "logging.", "sa.")
        ):
            silent.update(id(part) for part in ast.walk(node))
        elif isinstance(node, ast.Subscript):
            silent.update(id(part) for part in ast.walk(node.slice))
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        text = " ".join(text.split())
        if _WORDS.search(text) and _PHRASE.search(text) and not _CODE.search(text):
            yield text


def modules_now() -> dict[str, str]:
    """Sources of the modules that show something, by their path."""
    paths = [
        p
        for where in SHOWN_BY
        for p in sorted([ROOT / where] if where.endswith(".py") else (ROOT / where).rglob("*.py"))
    ]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def modules_at(revision: str) -> dict[str, str]:
    """The same at an earlier revision."""

    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True, check=True).stdout

    paths = git("ls-tree", "-r", "--name-only", revision, *SHOWN_BY).splitlines()
    return {path: git("show", f"{revision}:{path}") for path in paths if path.endswith(".py")}


def as_markdown(now: dict[str, str], before: dict[str, str], revision: str) -> str:
    """The list, a table a module; at its end the texts that are gone."""
    known = dict.fromkeys(text for source in before.values() for text in texts_of(source))
    shown = {path: list(dict.fromkeys(texts_of(source))) for path, source in now.items()}
    here = {text for texts in shown.values() for text in texts}
    gone = [text for text in known if text not in here]
    lines = [
        "# Texts of the pages",
        "",
        f"Written by `python docs/page_texts.py`. Before: revision {revision}; = is as it was, - is new.",
    ]
    versions = earlier_versions([text for text in here if text not in known], gone)
    for path, texts in shown.items():
        if not texts:
            continue
        lines += ["", f"## {path}", "", "| before | now |", "|---|---|"]
        for text in texts:
            if text in known:
                lines.append(f"| = | {_cell(text)} |")
                continue
            earlier = versions.get(text)
            lines.append(f"| {_cell(earlier) if earlier else '-'} | {_cell(text)} |")
    lines += ["", "## Gone", ""]
    lines += [f"- {_cell(text)}" for text in gone if text not in versions.values()]
    return "\n".join(lines) + "\n"


def earlier_versions(new: list[str], gone: list[str]) -> dict[str, str]:
    """Of each new text the one that is gone and most like it, if any is."""
    if not new or not gone:
        return {}
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
    first = letters.fit_transform(gone)
    alike = (letters.transform(new) @ first.T).toarray()
    best = np.argmax(alike, axis=1)
    return {
        text: gone[column]
        for text, column, score in zip(new, best, alike.max(axis=1), strict=True)
        if score >= ALIKE
    }


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", default=FIRST, metavar="REVISION", help=f"compare with (default: {FIRST})")
    revision = parser.parse_args().since
    text = as_markdown(modules_now(), modules_at(revision), revision)
    (ROOT / "docs" / "page_texts.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
