"""Tests of running all experiments by one command: completed, skipped and failed ones, and results that are kept."""

import json
import subprocess

import pytest

import musicsim.extensions.paper_tables.paper_tables as tables
from experiments.support import reproduction
from experiments.support.reproduction import reproduce
from musicsim.errors import DataSetAbsentError

# benchmarks.support.report: the module that writes reports
PRINTS = '''"""An experiment that prints: benchmarks.support.report."""
import json, sys
from pathlib import Path
from musicsim.commit import from_git
with Path("runs.txt").open("a") as runs:
    print("{name}", file=runs)
{first}
dict(short="fewer songs", data={data})  # so that there is a full form
claim = {{"claim": "as good as the paper's", "value": 0.5, "goal": 1.0, "holds": False}}
print(json.dumps({{"name": "{name}", "date": "2026-02-01T00:00:00+00:00", "commit": from_git("."),
    "machine": {{"versions": {{"numpy": "2"}}}}, "inputs": {{"songs": "{digest}"}},
    "settings": {{"seed": 0, "protocol": "full" if "--full" in sys.argv else "short", "seconds": 0.25, "data": "no songs: fetch them"}},
    "rows": {rows}, "claims": [claim]}}))
'''  # noqa: E501


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    folder = tmp_path / "checkout"
    (folder / "experiments").mkdir(parents=True)
    for name in ("experiments/__init__.py", "pyproject.toml"):
        (folder / name).write_text("")
    (folder / ".gitignore").write_text("/data\n/runs.txt\n")
    monkeypatch.setattr(tables.musicsim, "__file__", str(folder / "musicsim" / "__init__.py"))
    monkeypatch.setattr(reproduction, "ROOT", folder)
    monkeypatch.setattr(reproduction, "OWN", folder / "data" / "experiments" / "results")
    monkeypatch.setattr(reproduction, "KEPT", folder / "docs" / "results")
    for variable in reproduction.THREADS:  # reproduce sets these
        monkeypatch.setenv(variable, "1")
    return folder


def write(folder, name, first="", rows=({"error": 1},), digest="0abc", data=()):
    text = PRINTS.format(name=name, first=first, rows=list(rows), digest=digest, data=data)
    (folder / "experiments" / f"{name}.py").write_text(text)


def run(names=(), *, full=False, keep=False, fetch=False):
    return reproduce(names, full=full, keep=keep, jobs=2, fetch=fetch)


def results(folder):
    return sorted(path.stem for path in folder.glob("*.json"))


def test_failed_experiment_does_not_stop_others(checkout, capsys):
    write(checkout, "fails", first="sys.exit('out of songs')")
    write(checkout, "good")
    write(checkout, "lacks", rows=())
    assert run() is False
    said = " ".join(capsys.readouterr().out.split())
    assert "FAILED: the experiment fails ended with an error: out of songs" in said
    assert "skipped: no songs: fetch them" in said
    assert "0 of 1" in said
    assert "as good as the paper's" in said
    assert results(reproduction.OWN) == ["good"]
    assert results(reproduction.KEPT) == []
    assert run(["good", "lacks"]) is True  # absent data and false claims are not failures
    with pytest.raises(SystemExit, match="other: no such experiment"):
        run(["other"])


def test_only_complete_results_are_kept(checkout, capsys):
    write(checkout, "good")
    write(checkout, "partial", digest="absent")
    assert run(keep=True)
    assert results(reproduction.KEPT) == ["good"]
    assert "partial: not kept, for it was run without songs" in capsys.readouterr().out
    assert run(["good"], full=True, keep=True)
    assert run(["good"], keep=True)
    kept = json.loads((reproduction.KEPT / "good.json").read_text())
    assert kept["settings"]["protocol"] == "full"


def test_absent_data_are_listed_and_fetched_if_asked(checkout, capsys, monkeypatch):
    present, fetched = {"wine"}, []

    def fetch(name):
        fetched.append(name)
        if name == "aset400":
            raise DataSetAbsentError("it is absent.")
        present.add(name)

    monkeypatch.delenv("MUSICSIM_DATA_URL", raising=False)
    monkeypatch.setattr("musicsim.datasets.is_present", present.__contains__)
    monkeypatch.setattr("musicsim.datasets.fetch", fetch)
    write(checkout, "one", data=("wine", "aotm", ("mnist_20k", "mnist")))
    write(checkout, "two", data=("aotm", "aset400"))
    assert run()
    said = capsys.readouterr().out.splitlines()
    absent = [line for line in said if line.startswith("absent: ")]
    assert absent[:3] == absent[3:], "before and after"
    assert "aotm, Art of the Mix 2003: pairs of consecutive songs, for one, two. Run `python -c" in absent[0]
    assert "fetch('mnist')" in absent[1], "of alternatives, the one that can be fetched"
    assert "Get it from https://github.com/alphaprime" in absent[2]
    assert fetched == []
    assert run(["one", "two"], fetch=True)
    said = capsys.readouterr().out
    assert fetched == ["aotm", "mnist", "aset400"]
    assert said.count("absent: ") == 2
    assert "aset400: it is absent." in said


def test_incomplete_result_names_data_sets_instead_of_files(checkout, capsys):
    write(checkout, "partial", digest="absent")
    text = (checkout / "experiments" / "partial.py").read_text()
    (checkout / "experiments" / "partial.py").write_text(text.replace('"songs":', '"yes/yes_small/tags.txt":'))
    assert run(keep=True)
    assert "partial: not kept, for it was run without yes\n" in capsys.readouterr().out


def test_measured_commit_is_not_measured_again(checkout):
    write(checkout, "good")
    git = ["git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    assert run()
    assert run()
    runs = checkout / "runs.txt"
    assert runs.read_text().split() == ["good"]
    assert run(full=True)
    assert runs.read_text().split() == ["good"] * 2
    (checkout / "pyproject.toml").write_text("# changed")  # uncommitted files may have any content
    assert run(full=True)
    assert runs.read_text().split() == ["good"] * 3
