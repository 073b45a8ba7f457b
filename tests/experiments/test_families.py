"""Labels of families and shares of confusions, on libraries whose neighbors are known."""

import csv
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from experiments.families import PAIRS, PLAIN, SOUND, confusions, find_families, pool, read_labels, table_rows
from experiments.support import game_music
from experiments.support.pieces import euclidean, with_proximity

METAL, ORCHESTRAL = PAIRS[0]


def test_first_matching_label_counts():
    paths = {
        "/music/0ad-data/music/0_8Bit_Bonus_Track.ogg": "",
        "/music/0ad-data/music/Epitaph.ogg": ORCHESTRAL,
        "/music/wesnoth-1.16-music/music/battle.ogg": ORCHESTRAL,
        "/music/widelands-data/music/ingame_16.ogg": METAL,
        "/music/widelands-data/music/ingame_14.ogg": "",
        "/music/fretsonfire-songs-sectoid/Metal madness/song.ogg": METAL,
        "/music/fretsonfire-songs-sectoid/Feelings/song.ogg": "",
        "/music/elsewhere/music/battle.ogg": "",
    }
    assert find_families([Path(path) for path in paths], read_labels()).tolist() == list(paths.values())


def test_each_label_has_evidence_and_matches_pieces():
    with game_music.LABELS.open(encoding="utf-8", newline="") as stream:
        files = [(row["package"], "/".join(Path(row["path"]).parts[-2:])) for row in csv.DictReader(stream)]
    packages = {package for package, _ in files}
    for label in read_labels():
        assert label.evidence
        assert not label.family or any(label.family in pair for pair in PAIRS)
        if label.package in packages:
            assert any(label.package == package and fnmatchcase(name, label.files) for package, name in files), label


@pytest.fixture
def crafted(rng):
    """Vectors of 12 metal songs, 14 orchestral pieces far from them, 6 songs without a family, and a metal song.

    The last song is in the middle of the orchestral pieces, so it is closer to each than most of the others.
    """
    far = np.full(20, 10.0)
    X = np.concatenate(
        [rng.normal(size=(12, 20)), far + rng.normal(size=(14, 20)), -far + rng.normal(size=(6, 20)), far[None]]
    )
    return X, np.array([METAL] * 12 + [ORCHESTRAL] * 14 + [""] * 6 + [METAL])


def test_shares_match_loops(crafted):
    X, families = crafted
    D = euclidean(X)
    found = confusions({PLAIN: D}, families)
    assert set(found) == {(METAL, ORCHESTRAL), (ORCHESTRAL, METAL)}, "other families are too small"
    for (own, other), values in found.items():
        for i in range(len(X)):
            near = sorted((j for j in range(len(X)) if j != i), key=lambda j: D[i, j])[:10]
            if families[i] == own:
                assert values[PLAIN][i] == pytest.approx(np.mean([families[j] == other for j in near]))
                assert values[f"own {PLAIN}"][i] == pytest.approx(np.mean([families[j] == own for j in near]))
                assert values["chance"][i] == np.sum(families == other) / (len(X) - 1)
            else:
                assert np.isnan([values[PLAIN][i], values["chance"][i]]).all()


def test_hub_among_another_family_counts_until_hubs_are_reduced(crafted):
    X, families = crafted
    D = euclidean(X)
    found = confusions({PLAIN: D, SOUND: with_proximity(D, 1 / 3)}, families)
    groups = [f"artist {i // 2}" for i in range(len(X))]
    rows = {(row["songs"], row["ranking"]): row for row in table_rows("crafted", found, groups, 0)}
    assert rows[ORCHESTRAL, PLAIN]["share"] == pytest.approx(0.1), "the hub is among the nearest of every piece"
    assert rows[ORCHESTRAL, SOUND]["share"] < 0.1
    assert rows[ORCHESTRAL, SOUND]["lead"].startswith("-")
    assert rows[METAL, PLAIN]["share"] == pytest.approx(1 / 13), "the hub's own neighbors are all orchestral"
    assert (rows[METAL, PLAIN]["queries"], rows[METAL, PLAIN]["artists"]) == (13, 7)
    moved = np.where(np.arange(len(X))[:, None] == len(X) - 1, X[:1] + 0.1, X)
    cured = confusions({PLAIN: euclidean(moved)}, families)
    assert [np.nansum(values[PLAIN]) for values in cured.values()] == [0.0, 0.0]


def test_sets_are_pooled_over_all_queries(crafted):
    X, families = crafted
    D = euclidean(X)
    one, more = confusions({PLAIN: D}, families), confusions({PLAIN: D, SOUND: D}, families)
    without = {}, ["c"] * 3
    pooled, groups = pool([(one, ["a"] * len(X)), (more, ["b"] * len(X)), without])
    assert len(groups) == 2 * len(X) + 3
    for key, values in one.items():
        assert SOUND not in pooled[key], "it is not known for both sets"
        np.testing.assert_array_equal(pooled[key][PLAIN], [*values[PLAIN], *values[PLAIN], *[np.nan] * 3])
