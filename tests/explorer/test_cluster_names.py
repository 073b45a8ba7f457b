"""Clusters of sound in words: what their songs have more or less of than the library."""

import numpy as np

from musicsim.explorer.playlists.cluster_names import ClusterNames
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import take_snapshot


def rows_of_kind(snapshot, kind):
    """Rows of one of the kinds of sound that the library was made of."""
    return np.array([row for row, song in enumerate(snapshot.songs_at()) if song.genre == kind])


def test_tones_are_tonal_and_dark_and_clicks_are_not(twelve):
    snapshot = take_snapshot(twelve)
    names = ClusterNames(snapshot, np.zeros(snapshot.n_indexed))
    tones, clicks = (names.of_rows(rows_of_kind(snapshot, kind)).split(", ") for kind in ("tones", "clicks"))
    assert "tonal" in tones
    assert not {"tonal", "dark"} & set(clicks)
    assert {"loud", "bright", "quiet", "noisy", "fast", "slow"} & set(clicks)
    everything = names.of_rows(np.arange(snapshot.n_indexed))
    assert everything.startswith("such as "), "nothing is typical of the whole library but its artists"


def test_the_best_known_artist_is_the_one_that_is_played_most(twelve):
    snapshot = take_snapshot(twelve)
    rows = rows_of_kind(snapshot, "noise")
    plays = np.zeros(snapshot.n_indexed)
    for row in rows[[0, -1]]:
        plays[row] = 5.0
        assert (
            ClusterNames(snapshot, plays)
            .of_rows(rows)
            .endswith(f"such as {snapshot.songs_at([row])[0].artist}")
        )
        plays[row] = 0.0


def test_without_kept_frames_the_artist_is_the_name(twelve):
    for song in twelve.songs():
        twelve.frame_files.drop(song.content_hash)
    snapshot = take_snapshot(twelve)
    assert (
        ClusterNames(snapshot, np.zeros(24)).of_rows(rows_of_kind(snapshot, "tones")).startswith("such as ")
    )


def test_reasons_name_the_cluster(twelve):
    snapshot = take_snapshot(twelve)
    label, groups = next(iter(snapshot.clusters.items()))
    rows = np.flatnonzero(groups == np.bincount(groups).argmax())
    walk = Walk(snapshot)
    reasons = {edge.reason for edge in walk.reasons(*snapshot.row_ids[rows[:2]].tolist())}
    name = ClusterNames(snapshot, np.zeros(snapshot.n_indexed)).name(f"cluster-{label}", str(groups[rows[0]]))
    assert name
    assert f"both with similar sound ({name})" in reasons
