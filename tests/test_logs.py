"""What is logged: lines that people can read, bounded, without secrets; nothing private where strangers see it."""

import ast
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import musicsim
from musicsim import LIBRARY_FILE, logs

ours = logging.getLogger("musicsim.test")
theirs = logging.getLogger("somebody.else")
SECRET = "xylophone&kettle"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A library's folder whose log is written to."""
    monkeypatch.delenv("MUSICSIM_PUBLIC", raising=False)
    monkeypatch.setattr(logs, "_secrets", set())
    logs.begin()
    (tmp_path / LIBRARY_FILE).touch()
    with logs.kept_in(tmp_path):
        yield tmp_path


def written(folder: Path) -> str:
    return (folder / "logs" / "musicsim.log").read_text(encoding="utf-8")


def fail(words: str) -> None:
    try:
        raise RuntimeError(words)
    except RuntimeError:
        ours.exception("%s: unexpected error", "/music/zebra.mp3")


def test_a_line_says_when_how_bad_who_and_what(folder):
    ours.warning("%s has %d songs", "zebra", 3)
    theirs.warning("nothing of ours")
    assert re.fullmatch(
        r"[-\d]{10} [\d:,]{12} WARNING musicsim\.test: “zebra” has 3 songs\n"
        r"[-\d]{10} [\d:,]{12} WARNING somebody\.else: “nothing of ours”\n",
        written(folder),
    )


def test_what_is_private_can_be_taken_out_and_the_sentence_stays(folder):
    ours.warning("%s: tags (%r) of %s, job %s", "/a “b” c\n“", KeyError("zebra"), None, logs.Public("add"))
    fail("zebra in a trap")
    text = written(folder)
    assert text.count("zebra") == 3
    public = "\n".join(map(logs.without_private, logs.last_lines(folder, 100)))
    assert "zebra" not in public
    assert "“…”: tags (“…”) of None, job add" in public
    assert "RuntimeError: “…”" in public
    assert f"tests/{Path(__file__).name}" in public, "where it came from, as the checkout knows it"
    assert str(Path(__file__).parents[1]) not in text


def test_a_public_process_logs_to_stderr_only_and_nothing_private(folder, monkeypatch, capsys):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    ours.warning("%s has %d songs", "zebra", 3)
    theirs.error("zebra %s", "zebra", exc_info=ValueError("zebra"))
    fail("zebra in a trap")
    said = capsys.readouterr().err
    assert "zebra" not in said
    assert said.count("“…” has 3 songs") == 1
    assert said.count("RuntimeError: “…”") == 1
    assert [path.name for path in folder.iterdir()] == [LIBRARY_FILE], "a visitor must not cause a write"


@pytest.mark.parametrize(
    "shown", [SECRET, "xylophone%26kettle", SECRET.encode().hex()], ids=["plain", "in an address", "as Subsonic's hex"]
)
def test_a_secret_is_written_by_nobody_in_no_form(folder, capsys, shown):
    logs.hide(SECRET)
    ours.warning("%s", shown)
    ours.warning("%(where)s", {"where": shown})
    theirs.warning(f"GET /rest?p={shown}")
    fail(f"GET /rest?p={shown}")
    said = written(folder) + capsys.readouterr().err
    assert shown not in said
    assert said.count("GET /rest?p=…") == 4


def test_old_lines_make_room_and_several_processes_share_the_file(folder):
    code = f"""
from musicsim import logs
import logging, pathlib
logs.MAX_BYTES = 3_000
logs.begin()
logs.keep_in(pathlib.Path({str(folder)!r}))
for n in range(100):
    logging.getLogger("musicsim.test").info("line %d of %s", n, "zebra")
"""
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    files = sorted((folder / "logs").glob("musicsim.log*"))
    assert len(files) == 1 + logs.N_OLD
    assert all(file.stat().st_size <= 3_000 for file in files[:-1])
    lines = "".join(file.read_text() for file in files).splitlines()
    assert all(re.search(r" INFO +musicsim\.test: line \d+ of “zebra”$", line) for line in lines)


def test_a_folder_that_takes_no_log_is_no_reason_to_stop(folder, capsys):
    (folder / "logs").write_text("in the way")
    ours.warning("a sentence")
    assert capsys.readouterr().err == "a sentence\n"


def test_no_log_is_written_where_there_is_no_library(folder):
    (folder / LIBRARY_FILE).unlink()
    ours.warning("a sentence")
    assert not (folder / "logs").exists()


def test_messages_are_sentences_with_values_put_in_by_logging():
    """What is joined beforehand could not be told apart: it would count as public."""
    package = Path(musicsim.__file__).parent
    calls = [
        (path.name, node)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and re.match(r"_?log(ger)?\.(debug|info|warning|error|exception)$", ast.unparse(node.func))
    ]
    assert len(calls) > 20
    joined = [f"{name}: {ast.unparse(call)}" for name, call in calls if not isinstance(call.args[0], ast.Constant)]
    assert joined == []


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.42, "0.4 s"), (11.6, "12 s"), (185, "3 min 5 s"), (7_805, "2 h 10 min")]
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert logs.duration(seconds) == words
