"""``musicsim evaluate`` as a person and a machine use it."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.library import Library
from tests.command import run
from tests.learning import RANKED


@pytest.fixture
def library(tiny_library):
    """Two artists of one genre, one of another."""
    ids = [song.id for song in tiny_library.songs() if song.artist != "Artist noise"]
    tiny_library.edits.edit(ids, {"genre": "Pitched"})
    folder = tiny_library.folder
    tiny_library.close()
    return folder


def test_json_contains_every_score(library):
    out, _ = run("evaluate", "--truth", "genre", "--hubs", 3, "--json", library=library)
    found = json.loads(out)
    assert found["by"] == "genre"
    model, codewords = found["models"]
    assert (model["model"], codewords["model"]) == ("Sound", "Codewords")
    assert (model["scores"]["n_queries"], model["scores"]["n_skipped"]) == (8, 4)
    assert set(model["scores"]["figures"]) == {"auc", "map", "mrr", "precision"}
    assert model["held_out"] is None
    for order in ("plain", "hub_reduction"):
        lists = model["lists"][order]
        assert len(lists["hubs"]) == 3
        assert lists["hubs"][0]["song"]["title"].startswith("Song")
        assert lists["confusion"]["genres"] == ["Pitched"]  # four songs of another genre are too few for a result
        assert all(sum(row) == pytest.approx(1.0) for row in lists["confusion"]["shares"])


def test_prints_tables_without_json_option(library):
    out, err = run("evaluate", "--model", "Sound", "--truth", "genre", library=library)
    for words in ("AUC", "P@10", "hubness", "coverage", "Pitched", "hub reduction", "8 query songs, 4 skipped"):
        assert words in out
    assert "Traceback" not in err


def test_invalid_options_give_clear_errors(library, store):
    assert "sittings" in run("evaluate", "--truth", "mood", library=library, expect=2)[1]
    assert "does not have a model" in run("evaluate", "--model", "other", library=library, expect=1)[1]
    assert "plays" in run("evaluate", "--truth", "plays", library=library, expect=1)[1]
    folder = store.folder
    store.close()
    assert "Add some songs" in run("evaluate", library=folder, expect=1)[1]


def damage_by_nan(file):
    vectors = np.fromfile(file, "<f4")
    vectors[1] = np.nan
    vectors.tofile(file)


@pytest.mark.long
@pytest.mark.parametrize("damage", [Path.unlink, damage_by_nan])
@pytest.mark.parametrize("name", ["Sound", "Codewords"])
def test_damaged_model_is_reported_and_others_evaluated(library, damage, name):
    with Library.open(library) as opened:
        damage(opened.models.path(opened.models.find(name).id) / "vectors.f32")
    found = json.loads(run("evaluate", "--truth", "genre", "--json", library=library, expect=3)[0])
    (other,) = {"Sound", "Codewords"} - {name}
    assert [one["model"] for one in found["models"]] == [other]
    (failed,) = found["failed"]
    assert failed["model"] == name
    assert "damaged" in failed["reason"]
    out, err = run("evaluate", "--truth", "genre", library=library, expect=3)
    assert "8 query songs, 4 skipped" in out
    assert f"not evaluated: {name}: " in err
    _, err = run("evaluate", "--truth", "genre", "--model", name, library=library, expect=1)
    assert "damaged" in err, "alone it is an error as any other"
    run("evaluate", "--truth", "genre", "--model", other, library=library)


def test_evaluation_of_learned_model_shows_held_out_scores(library):
    from musicsim.explorer.models.artifacts import save_report

    lead = {"before": 0.5, "after": 0.7, "mean": 0.2, "low": 0.1, "high": 0.3}
    part = {"songs": 4, "artists": 2}
    report = RANKED | {
        "leads": {"auc": lead},
        "split": dict.fromkeys(("train", "validation", "test"), part),
        "settings": RANKED["settings"] | {"supervision": "tags"},
    }
    with Library.open(library) as opened:
        save_report(opened.models.path(opened.models.active().id), report)
    out, _ = run("evaluate", "--truth", "genre", library=library)
    assert "0.500 > 0.700" in out
    assert "held-out artists" in out.lower()


@pytest.mark.long
def test_compares_index_types(library, tmp_path):
    folder = tmp_path / "many" / "library"
    folder.parent.mkdir()
    write_library(folder, 1200, n_dimensions=20).close()
    found = json.loads(run("evaluate", "--search-speed", "--json", library=folder)[0])
    assert [row["kind"] for row in found["rows"]] == ["partition", "exact"]
    assert all(row["recall"] > 0.9 for row in found["rows"])
    out, _ = run("evaluate", "--search-speed", library=folder)
    for text in ("Partition", "Exact (in use)", "ms per query", "200 query songs"):
        assert text in out
    assert "at least 1,000 songs" in run("evaluate", "--search-speed", library=library, expect=1)[1]
    assert "no other options" in run("evaluate", "--search-speed", "--truth", "genre", library=library, expect=2)[1]
