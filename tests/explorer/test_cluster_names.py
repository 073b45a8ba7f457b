"""Tests of cluster names: what the songs of a cluster have more or less of than the library."""

import numpy as np
import pytest

from musicsim.audio import HARMONY_SIZE, RHYTHM_SIZE
from musicsim.explorer.playlists.edges import ClusterNames
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import take_snapshot


def rows_of_kind(snapshot, kind):
    """Return the rows of one of the kinds of sound in the library."""
    return np.array([row for row, song in enumerate(snapshot.songs_at()) if song.genre == kind])


def keep(library, song, *, tempo_bin, classes, level, slope):
    """Replace the features of a song by features with known measures."""
    files = library.frame_files
    rhythm, harmony = np.zeros(RHYTHM_SIZE, np.float32), np.zeros(HARMONY_SIZE, np.float32)
    rhythm[tempo_bin] = 1.0
    harmony[:12] = classes
    files.keep_aspects(song.content_hash, harmony, rhythm)
    mfcc = np.zeros((40, 13), np.float16)
    mfcc[:, 0], mfcc[:, 1] = level, slope
    np.save(files.path(song.content_hash), mfcc)


EVEN, ONE = np.full(12, 1 / 12), np.eye(12)[0]
USUAL = {"tempo_bin": 24, "classes": (EVEN + ONE) / 2, "level": -200.0, "slope": 100.0}


@pytest.mark.parametrize(
    ("differs", "words"),
    [
        ({"tempo_bin": 36}, "faster"),
        ({"tempo_bin": 12}, "slower"),
        ({"slope": 20.0}, "brighter"),  # less energy in low bands
        ({"slope": 150.0}, "darker"),
        ({"level": -100.0}, "louder"),
        ({"level": -300.0}, "quieter"),
        ({"classes": ONE}, "more tonal"),
        ({"classes": EVEN}, "less tonal"),
        ({"tempo_bin": 36, "level": -300.0}, "faster, quieter"),
        ({}, ""),
    ],
)
def test_name_states_distinctive_properties(twelve, differs, words):
    snapshot = take_snapshot(twelve)
    rows = rows_of_kind(snapshot, "tones")
    for row, song in enumerate(snapshot.songs_at()):
        keep(twelve, song, **(USUAL | (differs if row in rows else {})))
    name = ClusterNames(snapshot, np.zeros(snapshot.n_indexed)).name_rows(rows)
    found, _, artist = name.rpartition("such as ")
    assert sorted(found.removesuffix(", ").split(", ")) == sorted(words.split(", "))
    assert artist


def test_name_mentions_most_played_artist(twelve):
    snapshot = take_snapshot(twelve)
    rows = rows_of_kind(snapshot, "noise")
    plays = np.zeros(snapshot.n_indexed)
    for row in rows[[0, -1]]:
        plays[row] = 5.0
        assert ClusterNames(snapshot, plays).name_rows(rows).endswith(f"such as {snapshot.songs_at([row])[0].artist}")
        plays[row] = 0.0


def test_artist_alone_is_name_without_frames(twelve):
    for song in twelve.songs():
        twelve.frame_files.drop(song.content_hash)
    snapshot = take_snapshot(twelve)
    assert ClusterNames(snapshot, np.zeros(24)).name_rows(rows_of_kind(snapshot, "tones")).startswith("such as ")


def test_clusters_are_one_audible_reason(twelve):
    snapshot = take_snapshot(twelve)
    groups = next(iter(snapshot.clusters.values()))
    rows = np.flatnonzero(groups == np.bincount(groups).argmax())
    edges = Walk(snapshot).reasons(*snapshot.row_ids[rows[:2]].tolist())
    assert [edge.reason.split(":")[0] for edge in edges].count("similar sound") == 1
    assert not any("cluster" in edge.reason for edge in edges)
    assert sum(edge.probability for edge in edges) == pytest.approx(1.0)
