"""The log: readable lines, bounded, without secrets; nothing private is visible to visitors."""

import ast
import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import musicsim
from musicsim import LIBRARY_FILE, logs
from tests.waiting import PATIENCE_S

ours = logging.getLogger("musicsim.test")
theirs = logging.getLogger("somebody.else")
SECRET = "xylophone&kettle"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A library's folder with an active log."""
    monkeypatch.delenv("MUSICSIM_PUBLIC", raising=False)
    monkeypatch.setattr(logs, "known_secrets", set())
    logs.begin()
    (tmp_path / LIBRARY_FILE).touch()
    with logs.open_log(tmp_path):
        yield tmp_path


def written(folder: Path) -> str:
    return (folder / "logs" / "musicsim.log").read_text(encoding="utf-8")


def fail(words: str) -> None:
    try:
        raise RuntimeError(words)
    except RuntimeError:
        ours.exception("%s: unexpected error", "/music/zebra.mp3")


def test_line_has_time_level_logger_and_message(folder):
    ours.warning("%s has %d songs", "zebra", 3)
    theirs.warning("nothing of ours")
    assert re.fullmatch(
        r"[-\d]{10} [\d:,]{12} WARNING musicsim\.test: “zebra” has 3 songs\n"
        r"[-\d]{10} [\d:,]{12} WARNING somebody\.else: “nothing of ours”\n",
        written(folder),
    )


def test_private_values_can_be_removed_from_lines(folder):
    ours.warning("%s: tags (%r) of %s, job %s", "/a “b” c\n“", KeyError("zebra"), None, logs.Public("add"))
    fail("zebra in a trap")
    text = written(folder)
    assert text.count("zebra") == 3
    public = "\n".join(map(logs.redact_private, logs.last_lines(folder, 100)))
    assert "zebra" not in public
    assert "“…”: tags (“…”) of None, job add" in public
    assert "RuntimeError: “…”" in public
    assert f"tests/{Path(__file__).name}" in public, "where it came from, as the checkout knows it"
    assert str(Path(__file__).parents[1]) not in text


def test_public_process_logs_to_stderr_without_private_values(folder, monkeypatch, capsys):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    ours.warning("%s has %d songs", "zebra", 3)
    theirs.error("zebra %s", "zebra", exc_info=ValueError("zebra"))
    fail("zebra in a trap")
    said = capsys.readouterr().err
    assert "zebra" not in said
    assert said.count("“…” has 3 songs") == 1
    assert said.count("RuntimeError: “…”") == 1
    assert [path.name for path in folder.iterdir()] == [LIBRARY_FILE], "a visitor must not cause a write"


def test_operator_reads_messages_of_server_but_no_values(folder, monkeypatch, capsys):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    logs.hide("kettle")
    server = logging.getLogger("uvicorn.error")
    for logger in (server, logging.getLogger("uvicorn")):  # a test that starts uvicorn leaves its settings behind
        for name, value in {"handlers": [], "propagate": True, "level": logging.NOTSET, "disabled": False}.items():
            monkeypatch.setattr(logger, name, value)
    server.warning("Invalid HTTP request received.")
    server.error("Exception in ASGI application\n", exc_info=ValueError("zebra"))
    server.warning("Provided reload directories %s are invalid.", "zebra")
    server.error('  File "/music/zebra.py", line 3')
    server.warning("The kettle is invalid.")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "Invalid HTTP request received.", "Exception in ASGI application (ValueError: “…”)",
        "Provided reload directories “…” are invalid.", "“…”", "The … is invalid.",
    ]  # fmt: skip


def test_visitors_cannot_fill_log(folder, monkeypatch, capsys):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    monkeypatch.setattr(logs, "_counts", {})

    def descend(n: int) -> None:
        if n:
            descend(n - 1)
        raise ValueError("zebra")

    def fill(n_lines: int) -> list[str]:
        for _ in range(n_lines):
            try:
                descend(500)
            except ValueError:
                ours.exception("a page failed")
        return capsys.readouterr().err.splitlines()

    lines = fill(200)
    assert len(lines) == 10
    assert all(len(line) < 300 for line in lines)
    assert re.fullmatch(r"a page failed \(ValueError: “…”( < tests/test_logs.py:\d+ descend){4}\)", lines[0])
    assert lines[-1].endswith("further lines of this kind are left out for a minute")
    ours.warning("from another place")
    assert capsys.readouterr().err == "from another place\n"
    monkeypatch.setattr(logs, "_MINUTE_S", 0.0)  # the minute is over
    assert fill(1)[0].endswith("before, 190 lines of this kind were left out")


@pytest.mark.parametrize(
    "shown", [SECRET, "xylophone%26kettle", SECRET.encode().hex()], ids=["plain", "in an address", "as Subsonic's hex"]
)
def test_secrets_are_never_logged(folder, capsys, shown):
    logs.hide(SECRET)
    ours.warning("%s", shown)
    ours.warning("%(where)s", {"where": shown})
    theirs.warning(f"GET /rest?p={shown}")
    fail(f"GET /rest?p={shown}")
    said = written(folder) + capsys.readouterr().err
    assert shown not in said
    assert said.count("GET /rest?p=…") == 4


def fail_at(secret: str) -> None:
    try:
        raise ValueError(f"p={secret}: a wrong password")
    except ValueError:
        ours.exception("%s: unexpected error", f"/rest?p={secret}")


@pytest.mark.parametrize("secret", ["s", "%", "d", "r", "a", "it", "song", "%s", "n"])
def test_short_secrets_break_no_message(folder, capsys, secret):
    logs.hide(secret)
    ours.warning("%s has %d songs, %.1f%% of it, and %r", "zebra", 3, 0.5, logs.Public("a list"))
    theirs.warning('The widget with key "%s" was created', "name_1")
    ours.warning("%(what)s was found", {"what": "a zebra"})
    fail_at(secret)
    said, lines = capsys.readouterr().err, written(folder)
    for text in (said, lines):
        assert "Logging error" not in text
        assert re.search(r"zebra.? has 3 .*songs, 0\.5% of it", text), text
        assert 'The widget with key "name_1" was created' in text
        assert f"p={secret}" not in text
        assert "/rest?p=…" in text


def test_numbers_of_other_packages_stay_numbers(folder):
    logs.hide("s")  # "73" in hexadecimal
    ours.warning("%d of %d songs", np.int64(73), 730)
    assert "73 of 730 songs" in written(folder)


def test_log_rotates_and_is_shared_by_processes(folder):
    code = f"""
from musicsim import logs
import logging, pathlib
logs.MAX_BYTES = 3_000
logs.begin()
logs.keep_log(pathlib.Path({str(folder)!r}))
for n in range(100):
    logging.getLogger("musicsim.test").info("line %d of %s", n, "zebra")
"""
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(PATIENCE_S) for process in both] == [0, 0]
    files = sorted((folder / "logs").glob("musicsim.log*"))
    assert len(files) == 1 + logs.N_OLD
    assert all(file.stat().st_size <= 3_000 for file in files[:-1])
    lines = "".join(file.read_text() for file in files).splitlines()
    assert all(re.search(r" INFO +musicsim\.test: line \d+ of “zebra”$", line) for line in lines)


def test_unwritable_log_folder_is_tolerated(folder, capsys):
    (folder / "logs").write_text("in the way")
    ours.warning("a sentence")
    assert capsys.readouterr().err == "a sentence\n"


def test_no_log_without_library(folder):
    (folder / LIBRARY_FILE).unlink()
    ours.warning("a sentence")
    assert not (folder / "logs").exists()


@pytest.mark.long
def test_messages_use_lazy_logging_arguments():
    """A message joined beforehand hides its values: it would count as public."""
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
def test_durations_are_human_readable(seconds, words):
    assert logs.duration(seconds) == words
