"""List the licenses of the packages that musicsim installs: ``python docs/licences.py`` writes ``docs/licences.md``.

The packages of the locked files are looked up where they are installed. Wheels may contain libraries under other
licenses that their metadata does not mention: copyleft libraries are looked for by name.
"""

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
LOCKED = {"app": ROOT / "requirements.txt", "tests": ROOT / "requirements" / "test.txt"}
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
_HEAD = """# Licences of what is installed

Written by `python docs/licences.py` (`make lock` runs it) from what the installed packages say of themselves.

musicsim itself is BSD 3-Clause, and its wheel holds none of these packages. Who passes musicsim on together with
them, in an installer or an image of a container, passes on copyleft software, too, and has to keep to its terms. The
app imports mutagen, which is under the GPL, to read tags. Copyleft is:

"""


def locked(file: Path) -> list[str]:
    """Return the names of the packages of a locked file."""
    names = re.findall(r"^([\w.-]+)==", file.read_text(encoding="utf-8"), re.MULTILINE)
    return list(dict.fromkeys(names))


def licence(name: str) -> str:
    """Return the license that a package declares. Raises PackageNotFoundError if it is not installed."""
    about = metadata.metadata(name)
    classified = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if "License ::" in one]
    named = [one for one in classified if one != "OSI Approved"]
    return about.get("License-Expression") or ", ".join(named) or (about.get("License") or "not said").split("\n")[0]


def carried(name: str) -> list[str]:
    """Return the copyleft libraries inside a package's wheel."""
    found = {match[1] for file in metadata.files(name) or () if (match := _LIBRARY.fullmatch(file.name)) is not None}
    return sorted(found & _CARRIED.keys())


def _rows(names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, licence(name)
        except metadata.PackageNotFoundError:  # for another system or Python
            continue


def _copyleft(rows: list[tuple[str, str]]) -> Iterator[str]:
    for name, words in rows:
        if COPYLEFT.search(words):
            yield f"- {name}: {words}"
        for library in carried(name):
            yield f"- {library}, in the wheel of {name}: {_CARRIED[library]}"


def _table(rows: list[tuple[str, str]]) -> str:
    return "| package | licence |\n|---|---|\n" + "".join(f"| {name} | {words} |\n" for name, words in rows)


def main() -> None:
    """Write the page."""
    app = list(_rows(locked(LOCKED["app"])))
    tests = [row for row in _rows(locked(LOCKED["tests"])) if row not in app]
    text = _HEAD + "\n".join(_copyleft(app)) + "\n\n## The app\n\n" + _table(app)
    text += "\n## Tests only\n\nThese are not installed with the app. Copyleft among them:\n\n"
    PAGE.write_text(text + "\n".join(_copyleft(tests)) + "\n\n" + _table(tests), encoding="utf-8")


if __name__ == "__main__":
    main()
