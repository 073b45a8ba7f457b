"""Kept results: the table of who is first, and the pages and short forms that name results."""

import json
import re
from dataclasses import replace
from importlib import import_module

import pytest

from experiments.__main__ import README, keep_printed, with_kept
from experiments.support import leaders, tables
from experiments.support.comparisons import COMPARED, Task, first_where, format_comparison
from experiments.support.results import KEPT, ROOT, read
from experiments.support.tables import updated
from musicsim.extensions.paper_tables.paper_tables import short_form

# --- comparisons -----------------------------------------------------------------------------------------


def report(name, rows, **parts):
    return {
        "name": name, "date": "2026-02-01T00:00:00+00:00", "commit": "0abc", "inputs": {},
        "machine": {"cpu": "A processor", "versions": {"numpy": "2"}},
        "settings": {"seed": 0, "protocol": "short", "seconds": 0.25}, "rows": rows, "claims": [], **parts,
    }  # fmt: skip


def index(name, setting="", **figures):
    row = {"data": "hard", "rows": 2000, "index": name, "setting": setting, "ms_95": None, "recall": None}
    return {**row, "ms": None, **figures}


SEARCHED = [
    index("musicsim SpillForest", "8 trees", ms_95=0.2, build_s=2.0),
    index("musicsim PartitionIndex", ms_95=0.1, build_s=1.0),
    index("musicsim ExactIndex", "GEMM, batch", ms=0.01, recall=1.0, build_s=0.0),
    index("faiss IndexFlat", ms=0.5, recall=1.0, build_s=0.01),
    index("annoy", "50 trees", ms_95=0.25, build_s=9.0),
    index("annoy", "10 trees", ms_95=0.3, build_s=0.5),
    index("scikit-learn KDTree", ms=0.01, recall=0.9, build_s=0.1),
    {"data": "hard", "rows": 2000, "index": "voyager", "setting": "M 16", "failed": "ended by SIGILL"},
]


def test_table_compares_fastest_with_equal_recall():
    _, near, built = first_where([report("search", SEARCHED)])
    assert near == (
        "ten nearest of 2,000 vectors (hard), one query at a time, recall .95",
        ".10 ms", "annoy .25; scikit-learn KDTree –; voyager –", "2.5 times", "yes",
    )  # fmt: skip
    assert built == ("building that index", "1.0 s", "annoy 9.0; voyager –", "9.0 times", "yes")


@pytest.mark.parametrize(
    ("task", "lead", "first"),
    [
        (Task("fit", "s", 2.0, {"a": 1.5, "b": 1.0}), ".50 times", "**no**"),
        (Task("sound a second", "s", 2.0, {"a": 1.5, "b": 1.0}, more_is_better=True), "1.3 times", "yes"),
        (Task("AUC", "", 0.95, {"a": 0.98}, more_is_better=True), "-.030", "**no**"),
        (Task("AUC", "", 0.95, {"a": 0.95}, more_is_better=True), "+.000", "both"),
        (Task("fit", "s", 2.0, {"a": None}), "", ""),
        (Task("fit", "s", 2.0, {}), "", ""),
        (Task("fit", "s", None, {"a": 1.0}), "", ""),
    ],
)
def test_lead_is_time_ratio_or_quality_difference(task, lead, first):
    assert format_comparison(task)[3:] == (lead, first)


def test_leaderboard_ranks_methods_by_their_best_setting(monkeypatch):
    rows = [
        {"songs": "easy", "representation": name, "k": k, "best F": score}
        for name, k, score in [
            ("a", 1, 0.2),
            ("b", 1, 0.1),
            ("b", 3, 0.5),
            ("frequency of tags", 9, 0.3),
            ("a", 3, 0.4),
        ]
    ]
    rows += [{"songs": "few", "representation": name, "best F": 0.1} for name in ("a", "b")]  # too few for a board
    rows += [{"songs": "easy", "representation": "no score"}]
    board = next(board for board in leaders._BOARDS if board.result == "annotation")
    monkeypatch.setattr(leaders, "_BOARDS", (board, replace(board, lowest_first=True)))
    monkeypatch.setattr(leaders, "read", lambda _: report("annotation", rows))
    _, highest, lowest = leaders.tabulate_leaders()
    assert highest[3:] == ("b: 0.5", "a: 0.4", "frequency of tags: 0.3", "", "frequency of tags: 0.3", "`annotation`")
    assert lowest[3:6] == ("b: 0.1", "a: 0.2", "frequency of tags: 0.3")


def code(kind, name, us, recall=1.0):
    return {
        "data": kind, "codes": 500, "bits": 64, "index": name, "top10_us": us, "radius2_us": us, "recall": recall,
        "within": None,
    }  # fmt: skip


def test_table_shows_code_with_smallest_lead():
    rows = [
        code("clustered", "musicsim scan", 5.0), code("clustered", "faiss BinaryHash", 20.0),
        code("loose", "musicsim scan", 8.0), code("loose", "musicsim cascade", 1.0, recall=0.5),
        code("loose", "faiss BinaryHash", 4.0, recall=0.976), code("loose", "faiss BinaryMultiHash", 1.0, recall=0.9),
    ]  # fmt: skip
    _, *lines = first_where([report("hamming", rows)])
    assert lines == [
        (
            "ten nearest of 500 codes of 64 bits (loose); smallest lead among 2 kinds of codes",
            "8.0 µs", "faiss BinaryHash (recall .976) 4.0; faiss BinaryMultiHash (recall .900) –",
            ".50 times", "**no**",
        )
    ]  # fmt: skip


def test_table_shows_gap_of_unfinished_rival():
    solvers = {"bundle": (3.0, 3.0, 10.0), "admm": (20.0, None, 11.0), "subgradient": (20.0, None, 12.0)}
    rows = [
        {"task": "a", "method": method, "wall_s": wall, "near_s": near, "objective": objective}
        for method, (wall, near, objective) in solvers.items()
    ]
    rows += [
        {"task": "b", "method": "bundle", "cpu_s": 8.0, "auc": 0.99},
        {"task": "b", "method": "NCA", "cpu_s": 1.0, "auc": 0.87},
        {"task": "b", "method": "LMNN", "ended": "not installed: make rivals"},
    ]
    of = report("mlr", rows)
    of["settings"] |= {"a": "20 x 5", "b": "10 x 4"}
    _, a, seconds, auc = first_where([of])
    assert a[1:] == ("3.0 s", "ADMM (10% above the optimum at the end) 20", "6.7 times", "yes")
    rows[1]["wall_s"], rows[2]["near_s"] = 2.0, 9.0  # what gave up sooner than we arrived says nothing
    _, a, *_ = first_where([of])
    assert a[1:] == ("3.0 s", "sub-gradients 9.0; ADMM (10% above the optimum at the end) –", "3.0 times", "yes")
    assert seconds[1:] == (
        "8.0 s of CPU time",
        "scikit-learn's NCA (AUC .870) 1.0; metric-learn's LMNN –",
        ".13 times",
        "**no**",
    )
    assert auc[1:] == (".990", "scikit-learn's NCA .870; metric-learn's LMNN –", "+.120", "yes")


def test_table_footer_lists_missing_inputs_and_runs(monkeypatch):
    of = report("search", SEARCHED, commit="0abc-dirty", inputs={"mnist": "absent", "songs": "0abc"})
    of["machine"]["versions"]["usearch"] = "not installed"
    monkeypatch.setattr(tables, "read", lambda name: of if name == "benchmarks/search" else None)
    page = updated("<!-- results: benchmarks: search -->\n<!-- end -->")
    assert (
        "*`python -m benchmarks.search` (seed 0, 2026-02-01, A processor, without usearch, mnist, with uncommitted "
        "changes), short form: without 2,000 hard clusters"
    ) in page
    assert "`benchmarks.ten_million`" in page.partition("stored for ")[2]
    assert "`benchmarks.search`" not in page.partition("stored for ")[2]


def test_printed_results_never_replace_full_protocol(tmp_path, capsys):
    short, full = report("order", [{"a": 1}]), report("order", [{"a": 2}])
    full["settings"]["protocol"] = "full"
    empty, unknown = report("mlr", []), report("other", [{"a": 1}])
    printed = "\n".join(["a line", *(json.dumps(one) for one in (short, empty, unknown))])
    keep_printed(printed, tmp_path)
    assert read("benchmarks/order", tmp_path) == short
    keep_printed(json.dumps(full), tmp_path)
    keep_printed(json.dumps(short), tmp_path)
    keep_printed(json.dumps(full | {"commit": "0abc-dirty"}), tmp_path)
    assert read("benchmarks/order", tmp_path) == full
    assert [path.name for path in tmp_path.rglob("*.*")] == ["order.json"]
    assert capsys.readouterr().out.splitlines() == [
        "order: kept",
        "mlr: not kept, for it has no rows",
        "other: not kept, for there is no benchmarks/other.py",
        "order: kept",
        "order: not kept, for the kept result is of the full protocol",
        "order: not kept, for it was run with uncommitted changes, which nobody else has",
    ]
    with pytest.raises(SystemExit, match="no benchmark has printed its JSON object"):
        keep_printed("Traceback", tmp_path)


def test_compared_benchmarks_exist():
    assert all((ROOT / "benchmarks" / f"{name}.py").is_file() for name in COMPARED)


# --- coverage page ---------------------------------------------------------------------------------------


def test_coverage_page_refers_to_existing_files():
    page = (ROOT / "docs" / "research" / "coverage.md").read_text(encoding="utf-8").partition("\n## ")[2]
    said = re.findall(r"`([^`]+)`", page)
    files = [name for name in said if name.endswith((".py", "/"))]
    modules = [name for name in said if re.fullmatch(r"(experiments|benchmarks)\.\w+", name)]
    assert len(files) > 30
    assert len(modules) > 15
    assert [name for name in files if not any((ROOT / at / name).exists() for at in ("musicsim", "."))] == []
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []


# --- readme ----------------------------------------------------------------------------------------------


def test_readme_matches_stored_results():
    page = README.read_text(encoding="utf-8")
    assert page == with_kept(page), "run `python -m experiments`"


# --- short forms -----------------------------------------------------------------------------------------


PACKAGES = ("experiments", "benchmarks")
SCRIPTS = [(package, path.stem) for package in PACKAGES for path in sorted((ROOT / package).glob("*.py"))]
SHORT = [path for path in sorted(KEPT.rglob("*.json")) if '"protocol": "short"' in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("package", "name"), SCRIPTS)
def test_script_declares_short_form_if_it_has_one(package, name):
    has_short = "settings.full" in (ROOT / package / f"{name}.py").read_text(encoding="utf-8")
    assert bool(short_form(name, package)) == has_short


@pytest.mark.parametrize("name", [name for package, name in SCRIPTS if package == "experiments"])
def test_script_that_repeats_a_paper_says_how_it_differs(name):
    text = (ROOT / "experiments" / f"{name}.py").read_text(encoding="utf-8")
    title = text.partition("\n")[0]
    differs = import_module(f"experiments.{name}").DIFFERS if "\nDIFFERS" in text else None
    if re.search(r"\((thesis|SIGIR|Nair|WWW)\b", title):
        assert differs, "its title names a paper"
    if differs:
        assert list(differs) == ["of", "splits", "grid", "size"]
        assert all(differs.values())
        assert "differs=DIFFERS" in text


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_stored_short_result_is_final_or_worth_running(path):
    package = "benchmarks" if path.parent.name == "benchmarks" else "experiments"
    text = short_form(json.loads(path.read_text(encoding="utf-8"))["name"], package)
    assert "This is final" in text or "The full form is worth running" in text
    assert not text.endswith("."), "tables.py adds the period"
