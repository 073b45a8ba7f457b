"""Extensions that are not part of musicsim: files in the owner's folder, and installed distributions."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from musicsim.library import Library

CHECKOUT = Path(__file__).parents[1]
DOCUMENT = CHECKOUT / "docs" / "connect" / "extensions.md"
MAX_LINES = 60
JOB = """from musicsim.hooks import Extension, JobKind
EXTENSION = Extension(name="boxed", jobs={"note": JobKind("work:note", "Taking a note")})
"""
WORK = """def note(library, *, progress, text):
    (library.folder / "note.txt").write_text(text)
"""
INSTALLED = """import typer
from musicsim.hooks import Command, Extension
EXTENSION = Extension(name="greeting", commands={"greet": Command("words:greet", "Greet.", "A new panel")})
"""
WORDS = """def greet(name: str) -> None:
    print(f"hello {name}")
"""


def read_examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def read_template() -> str:
    return read_examples()[0]


class Outside:
    """Runs musicsim in new processes, with a folder of extensions and a folder of installed packages."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.site, self.library = folder / "site", library
        self.folder = folder / "config" / "musicsim" / "extensions"
        self.folder.mkdir(parents=True)
        self.environment = os.environ | {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "MUSICSIM_LIBRARY": str(library),
            "PYTHONPATH": f"{self.site}{os.pathsep}{CHECKOUT}",
        }

    def python(self, *arguments, **environment) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.library, env=self.environment | environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def run(self, *arguments, **environment) -> subprocess.CompletedProcess:
        return self.python("-m", "musicsim", *arguments, **environment)

    def findings(self) -> list[tuple[str, list[str]]]:
        """Return the levels and names of the findings of `musicsim doctor` about extensions."""
        found = json.loads(self.run("doctor", "--json").stdout)["findings"]
        return [(finding["level"], finding["names"]) for finding in found if finding["what"] == "extensions"]


@pytest.fixture
def outside(tmp_path, tiny_library) -> Outside:
    tiny_library.close()
    return Outside(tmp_path / "outside", tiny_library.folder)


def test_template_works_as_printed(outside):
    template = read_template()
    assert template.count("\n") < MAX_LINES
    (outside.folder / "long_songs.py").write_text(template, encoding="utf-8")
    listed = outside.run("long-songs", "-n", "2")
    assert re.fullmatch(r"(\d+\.\d min  .+\n){2}", listed.stdout), listed.stderr
    assert "long-songs" in outside.run("help", "listen").stdout
    opened = outside.python(
        "-c",
        "from tests.pages.actions import open_page\napp = open_page('library', 'long_songs')\n"
        "assert not app.exception\nprint(app.dataframe[0].value['song'].tolist()[0])",
    )
    assert opened.stdout == listed.stdout.partition("\n")[0] + "\n", opened.stderr
    assert outside.findings() == [("ok", [str(outside.folder / "long_songs.py")])]


def test_template_answers_a_word_of_a_search(outside):
    file = outside.folder / "long_songs.py"
    file.write_text(read_template().replace("_EPIC_S = 600", "_EPIC_S = 1"), encoding="utf-8")
    assert json.loads(outside.run("similar", "--json", "--words", "epic").stdout)
    file.unlink()
    assert outside.run("similar", "--json", "--words", "epic").returncode == 1


def test_example_of_a_test_passes_as_printed(outside):
    (outside.folder / "long_songs.py").write_text(read_template(), encoding="utf-8")
    (outside.folder / "test_long_songs.py").write_text(read_examples()[1], encoding="utf-8")
    done = outside.python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(outside.folder / "test_long_songs.py"))
    assert done.returncode == 0, done.stdout


def test_import_format_works_as_printed(outside):
    (outside.folder / "rockbox.py").write_text(read_examples()[2], encoding="utf-8")
    log = outside.library / ".scrobbler.log"
    log.write_text(
        "#AUDIOSCROBBLER/1.1\n#TZ/UNKNOWN\n#CLIENT/Rockbox sansaclip\n"
        "Ärzte\tGeräusch\tNichts\t3\t231\tL\t1706695860\t\nB\t\tC\t\t100\tS\t1706696860\t\n",
        encoding="utf-8",
    )
    done = outside.run("import", str(log), "--dry-run", "--json")
    seen = json.loads(done.stdout)
    assert (seen["format"], seen["first"], seen["last"]) == ("rockbox", "2024-01-31", "2024-01-31"), done.stderr
    assert [(skipped["reason"], skipped["count"]) for skipped in seen["skipped"]] == [("skipped", 1)]
    assert outside.findings()[0][0] == "ok"


def test_public_demonstration_does_not_load_the_folder(outside):
    (outside.folder / "long_songs.py").write_text(read_template(), encoding="utf-8")
    assert "long-songs" not in outside.run("help", MUSICSIM_PUBLIC="1").stdout


def test_job_of_a_folder_runs_in_its_own_process(outside):
    package = outside.folder / "boxed"
    package.mkdir()
    (package / "__init__.py").write_text(JOB)
    (package / "work.py").write_text(WORK)
    with Library.open(outside.library) as library:
        job_id = library.jobs.create("note", {"text": "seen"}, is_single=True)
    done = outside.run("run-job", str(outside.library), str(job_id))
    assert done.returncode == 0, done.stderr
    assert (outside.library / "note.txt").read_text() == "seen"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("EXTENSION = 1", "its EXTENSION is not a musicsim.hooks.Extension"),
        ("x = 1", "AttributeError: module 'musicsim.own_extensions.broken' has no attribute 'EXTENSION'"),
        ("from musicsim.hooks import Extension\nEXTENSION = Extension(name='rules')",
         "another extension has the name 'rules'"),
        ("from musicsim.hooks import Extension\nEXTENSION = Extension(name='x', hooks={'after_all': ':f'})",
         "'after_all' is not a hook"),
    ],
)  # fmt: skip
def test_broken_extension_is_named_and_left_out(outside, source, reason):
    file = outside.folder / "broken.py"
    file.write_text(source)
    (outside.folder / "long_songs.py").write_text(read_template(), encoding="utf-8")
    done = outside.run("long-songs", "-n", "1")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr == f"The extension {file} is left out: {reason}.\n"


def test_broken_target_stops_only_what_needs_it(outside):
    file = outside.folder / "late.py"
    file.write_text(
        "from musicsim.hooks import Command, Extension\n"
        "EXTENSION = Extension(name='late', tables='missing',\n"
        " commands={'late': Command(':absent', 'Fail.'), 'add': Command(':f', 'No.')},\n"
        " hooks={'text_filter': ':gone'})\n"
    )
    listed = outside.run("list", "--json")
    assert json.loads(listed.stdout)
    assert f"of the extension {file} fails: ModuleNotFoundError" in listed.stderr
    failed = outside.run("late")
    assert failed.returncode == 1
    assert f"error: The target ':absent' of the extension {file} fails: AttributeError" in failed.stderr.replace(
        "\n", " "
    )
    assert "--retry" in outside.run("add", "--help").stdout, "an extension cannot replace a command"
    ((level, names),) = outside.findings()
    assert (level, len(names)) == ("problem", 4)


def test_wheel_with_an_entry_point_adds_its_command(outside, tmp_path):
    source = tmp_path / "source"
    (source / "greeting").mkdir(parents=True)
    (source / "greeting" / "__init__.py").write_text(INSTALLED)
    (source / "greeting" / "words.py").write_text(WORDS)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "musicsim-greeting"\nversion = "1.2"\n'
        '[project.entry-points."musicsim.extensions"]\ngreeting = "greeting:EXTENSION"\n'
    )
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = outside.python(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", tmp_path, source)
    (wheel,) = tmp_path.glob("*.whl")
    placed = outside.python(*pip, "install", "--no-deps", "--no-index", "--target", outside.site, wheel)
    assert (built.returncode, placed.returncode) == (0, 0), built.stderr + placed.stderr
    for visitors in ("0", "1"):
        greeted = outside.run("greet", "you", MUSICSIM_PUBLIC=visitors)
        assert (greeted.stdout, greeted.stderr) == ("hello you\n", "")
    assert outside.findings() == [("ok", ["musicsim-greeting 1.2"])]
