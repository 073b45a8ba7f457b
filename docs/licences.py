"""List the licenses of the installed packages: ``python -m docs.licences`` fills ``docs/project/licences.md``.

The packages of the locked files are looked up where they are installed. Wheels may contain libraries under other
licenses that their metadata does not mention: copyleft libraries are looked for by name.
"""

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from docs.blocks import fill_blocks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "project" / "licences.md"
LOCKED = {
    "app": ROOT / "requirements.txt",
    "ear": ROOT / "musicsim" / "extensions" / "embeddings" / "assets" / "ear.txt",  # `make app` installs these, too
    "tests": ROOT / "requirements" / "test.txt",
}
COPYLEFT = re.compile(r"GPL|General Public|MPL|Mozilla|EPL|CDDL|EUPL")

# Copyleft licenses of libraries inside wheels. Libraries that GCC's exception allows to link with anything are not
# listed.
_CARRIED = {
    "libx264": "GPL-2.0-or-later",
    "libx265": "GPL-2.0-or-later",
    "libavcodec": "LGPL-3.0-or-later",
    "libmp3lame": "LGPL-2.0-or-later",
    "libsndfile": "LGPL-2.1-or-later",
    "libgnutls": "LGPL-2.1-or-later",
    "libgmp": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libnettle": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libunistring": "LGPL-3.0-or-later OR GPL-2.0-or-later",
    "libasound": "LGPL-2.1-or-later",
}
_LIBRARY = re.compile(r"(lib[a-z0-9]+)[-_.].*")


def locked(file: Path) -> list[str]:
    """Return the names of the packages of a locked file."""
    names = re.findall(r"^([\w.-]+)==", file.read_text(encoding="utf-8"), re.MULTILINE)
    return list(dict.fromkeys(names))


def licence(name: str) -> str:
    """Return the license that a package declares; empty if it is not installed because it is for another system."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    classified = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if "License ::" in one]
    named = [one for one in classified if one != "OSI Approved"]
    return about.get("License-Expression") or ", ".join(named) or (about.get("License") or "not stated").split("\n")[0]


def carried(name: str) -> dict[str, str]:
    """Return the copyleft libraries inside a package's wheel, with their licenses."""
    found = {match[1] for file in metadata.files(name) or () if (match := _LIBRARY.fullmatch(file.name)) is not None}
    return {library: _CARRIED[library] for library in sorted(found & _CARRIED.keys())}


def list_licences(names: Iterable[str]) -> str:
    """Return a list of copyleft packages and libraries, and a table of all packages that are installed."""
    licences = {name: words for name in names if (words := licence(name))}
    copyleft = ""
    for name, words in licences.items():
        copyleft += f"- {name}: {words}\n" if COPYLEFT.search(words) else ""
        copyleft += "".join(f"- {part}, in the wheel of {name}: {terms}\n" for part, terms in carried(name).items())
    rows = "".join(f"| {name} | {words} |\n" for name, words in licences.items())
    return f"{copyleft}\n| package | license |\n|---|---|\n{rows}"


def main() -> None:
    """Fill in both lists of the page."""
    app = sorted({*locked(LOCKED["app"]), *locked(LOCKED["ear"])})
    tests = [name for name in locked(LOCKED["tests"]) if name not in app]
    lists = {"app": list_licences(app), "tests": list_licences(tests)}
    PAGE.write_text(fill_blocks(PAGE, lists), encoding="utf-8")


if __name__ == "__main__":
    main()
