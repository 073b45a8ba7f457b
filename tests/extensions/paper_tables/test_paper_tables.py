"""Tests of experiment results: the one shown, its columns, and a run that is followed and stopped."""

import json
from pathlib import Path

import pytest

import musicsim.extensions.paper_tables.paper_tables as tables
from musicsim.errors import LibraryError, NotFoundError
from musicsim.progress import no_progress
from tests.progress import cancel_when
from tests.waiting import HANG_S

CHECKOUT = Path(__file__).parents[3]

PRINTS = '''"""A small experiment. It has more to say."""
import json, sys, time
print("[ 0.1 s] step one", file=sys.stderr, flush=True)
time.sleep({seconds})
{last}
print(json.dumps({{"name": "small", "date": "2026-02-01T00:00:00+00:00", "machine": {{"cores": 2}},
    "settings": {{"seed": 0, "data": sys.argv[2:]}}, "rows": {rows}, "claims": []}}))
'''
ROWS = [{"set": "a", "error": 0.5}]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Make a checkout with one experiment, which prints a line and a result."""
    folder = tmp_path / "checkout"
    (folder / "experiments").mkdir(parents=True)
    (folder / "experiments" / "__init__.py").write_text("")
    (folder / "experiments" / "_shared.py").write_text("")
    (folder / "pyproject.toml").write_text("")
    write(folder)
    (folder / "musicsim").mkdir()
    monkeypatch.setattr(tables.musicsim, "__file__", str(folder / "musicsim" / "__init__.py"))
    return folder


def write(folder, seconds=0, last="", rows=ROWS):
    (folder / "experiments" / "small.py").write_text(PRINTS.format(seconds=seconds, last=last, rows=rows))


def keep(folder, date, where="docs/results"):
    path = folder / where / "small.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {"name": "small", "date": date, "machine": {}, "settings": {}, "rows": [], "claims": []}
    path.write_text(json.dumps(report))
    return path


def test_experiments_are_public_modules(checkout):
    assert tables.experiments() == {"small": "A small experiment. It has more to say."}


def test_installed_package_has_no_experiments(checkout):
    (checkout / "pyproject.toml").unlink()
    assert tables.experiments() == {}
    assert tables.load_table("small") is None
    with pytest.raises(NotFoundError, match="checkout"):
        tables.run_experiment("small", no_progress)


def test_newer_result_is_shown(checkout):
    assert tables.load_table("small") is None
    keep(checkout, "2026-01-05T00:00:00+00:00")
    assert not tables.load_table("small").is_own
    own = keep(checkout, "2026-01-06T00:00:00+00:00", "data/experiments/results")
    assert tables.load_table("small").is_own
    keep(checkout, "2026-01-07T00:00:00+00:00")
    assert not tables.load_table("small").is_own
    own.write_text("{}")
    with pytest.raises(LibraryError, match=r"results/small\.json"):
        tables.load_table("small")


def test_run_reports_progress_and_is_stored(checkout):
    told = []
    assert tables.run_experiment("small", told.append) is True
    assert "[ 0.1 s] step one" in told
    table = tables.load_table("small")
    assert (table.rows, table.is_own) == (ROWS, True)
    assert [p.name for p in (checkout / "data/experiments/results").iterdir()] == ["small.json"]


def test_run_can_be_canceled(checkout):
    write(checkout, seconds=HANG_S)
    own = keep(checkout, "2026-01-06T00:00:00+00:00", "data/experiments/results")
    before = own.read_text()
    assert tables.run_experiment("small", cancel_when(lambda message, *_: "step one" in message)) is False
    assert own.read_text() == before


@pytest.mark.parametrize(
    ("last", "words"),
    [("raise SystemExit('no data')", "no data"), ("print('x'); sys.exit(0)", "not an experiment result")],
)
def test_failed_run_keeps_last_result(checkout, last, words):
    write(checkout, last=last)
    own = keep(checkout, "2026-01-06T00:00:00+00:00", "data/experiments/results")
    before = own.read_text()
    with pytest.raises(LibraryError, match=words):
        tables.run_experiment("small", no_progress)
    assert own.read_text() == before
    assert [p.name for p in own.parent.iterdir()] == ["small.json"]


def test_run_without_data_keeps_last_result(checkout):
    own = keep(checkout, "2026-01-06T00:00:00+00:00", "data/experiments/results")
    before = own.read_text()
    write(checkout, rows=[])
    with pytest.raises(tables.NothingMeasured, match="--full"):  # the small experiment prints its options here
        tables.run_experiment("small", no_progress, ["--full"])
    assert own.read_text() == before


@pytest.mark.parametrize("name", ["_shared", "other", "../small", "small; x"])
def test_rejects_unknown_experiments(checkout, name):
    with pytest.raises(NotFoundError, match="the experiment"):
        tables.run_experiment(name, no_progress)


def test_paper_columns_appear_next_to_ours():
    rows = [{"set": "a", "error, %": 1.5, "sd": 0.1, "splits": 4, "MAP": 0.5, "MAP sd": 0.1, "paper": 2.0}]
    rows.append({"set": "b", "error, %": None, "thesis MAP": 0.4, "hubness deviation": 0.1})
    assert tables.order_columns(rows) == [
        ("set", None), ("error, %", "sd"), ("paper", None), ("splits", None), ("MAP", "MAP sd"), ("thesis MAP", None),
        ("hubness deviation", None),
    ]  # fmt: skip


def test_rows_of_different_tables_are_split():
    rows = [{"set": 1}, {"lead": 2}, {"set": 3, "more": 4}]
    assert tables.split_tables(rows) == [[{"set": 1}, {"set": 3, "more": 4}], [{"lead": 2}]]


def test_checkout_experiments_match_stored_results():
    names = set(tables.experiments())
    assert {"demo", "duplicates", "noise", "uci"} <= names
    folder = CHECKOUT / "docs" / "results"
    for path in folder.glob("*.json"):
        assert path.stem in names
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["name"] == path.stem
        assert report["rows"]
        assert all({"claim", "value", "goal", "holds"} == claim.keys() for claim in report["claims"])
