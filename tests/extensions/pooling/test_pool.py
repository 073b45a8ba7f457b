"""Tests of ``musicsim pool``."""

import json

import pytest

from musicsim.extensions.pooling.random_effects import combine_effects
from tests.command import run
from tests.extensions.pooling.examples import write_example


@pytest.fixture
def files(tmp_path):
    """Write four libraries, of which the last two are classical."""
    return [
        write_example(tmp_path / f"{i}.json", mean, error, classical=classical)
        for i, (mean, error, classical) in enumerate(
            [(0.04, 0.01, ""), (0.06, 0.02, "10% to 24%"), (-0.02, 0.01, "75% or more"), (-0.03, 0.02, "25% to 49%")]
        )
    ]


def test_table_combines_libraries(files, tmp_path):
    found = json.loads(run("pool", *files, "--json", library=tmp_path)[0])
    (table,) = found["tables"]
    assert (table["ground_truth"], table["models"]) == ("genre", ["Sound", "net"])
    assert [row["measure"] for row in table["rows"]] == ["auc", "map", "mrr", "precision"]
    row = table["rows"][1]
    expected = combine_effects([0.04, 0.06, -0.02, -0.03], [0.01, 0.02, 0.01, 0.02])
    for name in ("mean", "low", "high", "tau", "i2", "predicted_low", "predicted_high"):
        assert row[name] == pytest.approx(getattr(expected, name), abs=1e-6)
    assert (row["n"], row["n_behind"]) == (4, 2)
    out, _ = run("pool", *files, library=tmp_path)
    for words in ("net vs. Sound", "MAP", f"{expected.mean:.3f} ({expected.low:.3f} to {expected.high:.3f})", "behind"):
        assert words in out


def test_order_of_files_does_not_matter(files, tmp_path):
    assert run("pool", *files, "--json", library=tmp_path) == run("pool", *files[::-1], "--json", library=tmp_path)


def test_same_library_counts_once(files, tmp_path):
    again = write_example(tmp_path / "again.json", 0.04, 0.01, commit="1" * 12)
    out, _ = run("pool", *files, again, "--json", library=tmp_path)
    found = json.loads(out)
    assert found["tables"][0]["rows"][0]["n"] == 4
    (sentence,) = found["repeated"]
    assert str(again) in sentence
    assert "counts once" in run("pool", *files, again, library=tmp_path)[1].replace("\n", " ")


def test_subgroups_by_genre(files, tmp_path):
    found = json.loads(run("pool", *files, "--share", "classical", "--json", library=tmp_path)[0])
    rows = {row["subgroup"]: row for row in found["tables"][0]["rows"] if row["measure"] == "map"}
    assert {words: row["n"] for words, row in rows.items()} == {
        "": 4, "25% or more classical": 2, "less than 25% classical": 2,
    }  # fmt: skip
    assert rows["25% or more classical"]["n_behind"] == 2
    assert "must be one of" in run("pool", *files, "--share", "polka", library=tmp_path, expect=2)[1]


def test_other_models_make_another_table_and_one_library_has_no_tau(files, tmp_path):
    other = write_example(tmp_path / "other.json", 0.1, other="another net")
    found = json.loads(run("pool", *files, other, "--json", library=tmp_path)[0])
    assert [table["models"][1] for table in found["tables"]] == ["net", "another net"]
    row = found["tables"][1]["rows"][0]
    assert (row["n"], row["tau"], row["predicted_low"]) == (1, None, None)


def test_invalid_file_is_named(files, tmp_path):
    files[2].write_text("{}", encoding="utf-8")
    assert "2.json" in run("pool", *files, library=tmp_path, expect=1)[1].replace("\n", "")
