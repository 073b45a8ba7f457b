"""The output of benchmarks and experiments: a JSON object with the claims, and tables of declared columns."""

import hashlib
import json
import lzma
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.support.columns import (
    NUMBER_1,
    SHARE_2,
    SIGNIFICANT_2,
    Column,
    find_row,
    list_columns,
    shorten_lead,
    with_paper,
)
from benchmarks.support.report import Settings, Skipped, at_least, at_most, digest, load_found, main, race
from musicsim.datasets import find

# --- report ----------------------------------------------------------------------------------------------


def _run(settings, progress):
    progress("half way")
    settings.facts["splits"] = 3
    rows = [{"name": "a", "value": np.float32(0.5), "missing": float("nan")}]
    return rows, [at_least("times faster", 1.9, 1.4), at_most("error", 2.0, 1.0), at_least("unknown", None, 1.0)]


def test_last_line_is_complete_json(capsys):
    main(
        "trial",
        "a trial",
        _run,
        rivals=("scikit-learn", "no-such-rival"),
        short="3 of 9 splits",
        arguments=["--json", "--seed", "7"],
    )
    out, err = capsys.readouterr()
    report = json.loads(out.splitlines()[-1])
    keys = ["name", "date", "commit", "machine", "inputs", "settings", "differs", "rows", "claims"]
    assert list(report) == keys
    assert report["settings"]["seed"] == 7
    assert report["settings"]["protocol"] == "short"
    assert report["settings"]["splits"] == 3
    assert report["rows"] == [{"name": "a", "value": 0.5, "missing": None}]
    assert [c["holds"] for c in report["claims"]] == [True, False, False]
    assert report["claims"][0] == {"claim": "times faster", "value": 1.9, "goal": 1.4, "holds": True}
    assert report["machine"]["versions"]["no-such-rival"] == "not installed"
    assert "half way" in err


def test_prints_table_without_json_option(capsys):
    main("trial", "a trial", _run, short="3 of 9 splits", arguments=["--full"])
    out = capsys.readouterr().out
    assert "times faster" in out
    assert "full" in out
    with pytest.raises(json.JSONDecodeError):
        json.loads(out)


def test_script_with_one_protocol_runs_it_in_full(capsys):
    main("trial", "a trial", _run, arguments=["--json"])
    assert json.loads(capsys.readouterr().out)["settings"]["protocol"] == "full"
    with pytest.raises(SystemExit):
        main("trial", "a trial", _run, arguments=["--full"])


def test_report_identifies_inputs_by_hashes_of_files(capsys, tmp_path, monkeypatch):
    (tmp_path / "covtype").mkdir()
    (tmp_path / "covtype" / "covtype_sample.csv.xz").write_bytes(lzma.compress(b"1\n"))
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path))
    monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path / "none"))

    def inputs(*data):
        main("trial", "a trial", _run, data=data, arguments=["--json"])
        return json.loads(capsys.readouterr().out)["inputs"]

    sample = {"covtype/covtype_sample.csv": hashlib.sha256(b"1\n").hexdigest()}  # as before compression
    assert inputs("covtype_sample", "aotm") == sample | {"aotm/aotm-bigrams.csv.gz": "absent"}
    assert inputs(("covtype", "covtype_sample")) == sample, "of alternatives, the one that is there"
    assert inputs(("covtype", "aotm")) == {"covtype": "absent"}, "the first, if none is there"


def test_absent_data_set_is_the_reason_for_no_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path))
    monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path))
    main("trial", "a trial", lambda *_: find("aotm"), data=("aotm",), arguments=["--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == report["claims"] == []
    assert "fetch('aotm')" in report["settings"]["data"]


def test_data_sets_that_are_there_are_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path))
    monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path))
    settings, said = Settings(), []
    found = load_found({"a": lambda: 1, "b": lambda: find("aotm"), "c": lambda: find("aotm")}, settings, said.append)
    assert found == {"a": 1}
    assert settings.facts["data"].count("is absent") == 1
    assert [line.partition(":")[0] for line in said] == ["b is left out", "c is left out"]


def test_seconds_are_those_of_all_resumed_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.support.report.PARTS", tmp_path)

    def seconds(run, *options):
        main("trial", "a trial", run, has_parts=True, arguments=["--json", *options])
        return json.loads(capsys.readouterr().out)["settings"]["seconds"]

    def interrupted(_, progress):
        time.sleep(0.3)
        progress("a part is finished")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        seconds(interrupted, "--resume")
    assert seconds(_run, "--resume") >= 0.3
    assert seconds(_run, "--resume", "--seed=1") < 0.3, "another seed has other parts"
    assert seconds(_run) < 0.3


def test_versions_of_rivals_in_their_own_environment_are_recorded(capsys, tmp_path, monkeypatch):
    made = tmp_path / "lib/python3.11/site-packages/metric_learn-0.7.0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: metric-learn\nVersion: 0.7.0\n")
    monkeypatch.setattr("benchmarks.support.report.ENVIRONMENT", tmp_path)
    main("trial", "a trial", _run, rivals=("metric-learn", "no-such-rival"), arguments=["--json"])
    versions = json.loads(capsys.readouterr().out)["machine"]["versions"]
    assert (versions["metric-learn"], versions["no-such-rival"]) == ("0.7.0", "not installed")


def test_folder_digest_covers_names_and_contents(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, name in ((one, "a"), (other, "b")):
        folder.mkdir()
        (folder / name).write_text("same")
    assert digest(one / "a") == digest(other / "b") != digest(one) != digest(other)


def test_skipped_benchmark_reports_reason_without_rows(capsys):
    def run(settings, progress):
        raise Skipped("no songs: fetch them")

    main("trial", "a trial", run, arguments=["--json"])
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["claims"]) == ([], [])
    assert report["settings"]["data"] == "no songs: fetch them"


def test_race_alternates_and_returns_minimum_time():
    order = []
    ticks = iter(range(100))
    seconds = race(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2, clock=lambda: next(ticks)
    )
    assert order == ["a", "b"] * 3
    assert seconds == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("takes", "arguments", "field", "value"),
    [
        ("takes_library", ["--library", "some/where"], "library", Path("some/where")),
        ("takes_library", [], "library", None),
        ("takes_sets", ["--music", "a", "--music", "b"], "sets", (Path("a"), Path("b"))),
        ("takes_sets", [], "sets", ()),
        ("takes_music", ["--music", "a", "--labels", "b", "--cache", "c"], "labels", Path("b")),
        ("has_parts", ["--resume"], "resume", True),
        ("takes_processes", ["--processes", "2"], "processes", 2),
    ],
)
def test_scripts_have_only_options_that_they_take(capsys, takes, arguments, field, value):
    seen = []

    def run(settings, _):
        seen.append(getattr(settings, field))
        return [], []

    main("trial", "a trial", run, **{takes: True}, arguments=arguments)
    assert seen == [value]
    if arguments:
        with pytest.raises(SystemExit):
            main("trial", "a trial", run, arguments=arguments)
        assert arguments[0] in capsys.readouterr().err


# --- columns ---------------------------------------------------------------------------------------------


ROWS = [{"part": "a", "n": 1234, "P@1": 0.125}, {"part": "b", "n": 1}, {"part": "a", "n": 7, "P@1": None}]


def test_lines_have_cells_of_declared_columns():
    table = list_columns(
        Column("", lambda row: row["part"] * 2), Column("songs", "n", "{:,}"), Column("P@1", "P@1", SHARE_2),
        Column("again", "P@1", NUMBER_1, absent="–"), where=lambda row: row["part"] == "a",
    )  # fmt: skip
    assert list(table(ROWS)) == [
        ["", "songs", "P@1", "again"], ["aa", "1,234", ".13", "0.1"], ["aa", "7", "", "–"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (NUMBER_1, -0.04, "0.0"), (SHARE_2, 0.005, ".01"), (SHARE_2, -0.5, "-.50"),
        (SIGNIFICANT_2, 0.0123, ".012"), (SIGNIFICANT_2, 1234.5, "1,235"), (SIGNIFICANT_2, 0, "0"),
        (shorten_lead, "+0.120 (+0.010 to +10.200), sd 0.1", "+.120 (+.010 to +10.200)"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_half_up_without_leading_zero(form, value, text):
    assert form(value) == text


def test_rows_are_found_by_columns_with_any_letters():
    assert find_row(ROWS, P_1=0.125)["n"] == 1234
    assert find_row(ROWS, part="c") == {}
    assert (with_paper("1", None), with_paper("1", 0.9)) == ("1", "1 (0.9)")
