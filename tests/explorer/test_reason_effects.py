"""Tests of the effects of reasons in a library's playlists, and of reasons that are left out or lowered."""

import shutil

import pytest

from musicsim import playlist
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.reason_weights import is_stable, lower_reason, read_factors, restore_reason
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library


@pytest.fixture
def library(styles_library, tmp_path):
    shutil.copytree(styles_library, tmp_path / "own")
    with Library.open(tmp_path / "own") as opened:
        yield opened


def generate(library, **options):
    return Walk(take_snapshot(library)).generate(PlaylistRequest(length=10, **options), 3, effects=True)


def used_names(drawn):
    return [edge.name for edge in drawn.edges if edge is not None]


def test_steps_have_exact_effects(library):
    drawn = generate(library)
    # a step has no effect if no edge led to an allowed song
    assert all((edge.effect is None) == (edge.probability == 0.0) for edge in drawn.edges if edge)
    tried = [(song, edge.effect) for song, edge in zip(drawn.songs, drawn.edges, strict=True) if edge and edge.effect]
    effects = [effect for _, effect in tried]
    assert len(effects) >= 5
    assert all(0 <= effect.without <= 1 and 0 < effect.probability <= 1 for effect in effects)
    assert any(effect.without < effect.probability for effect in effects)
    songs = {song.id for song in library.songs()}
    assert all(effect.instead is None or effect.instead.id in songs for effect in effects)
    assert all(effect.instead is None or effect.instead.id != song.id for song, effect in tried)
    steps = drawn.steps_as_json()
    assert all(set(step) == {"reason", "edge", "probability", "without", "instead"} for step in steps)
    assert [step["probability"] for step in steps if step["probability"]] == [e.probability for e in effects]


def test_reasons_can_be_left_out(library):
    names = set(used_names(generate(library))) - {playlist.UNIFORM}
    assert names
    drawn = generate(library, not_because=frozenset(names))
    assert len(drawn.songs) == 10
    assert names.isdisjoint(used_names(drawn))


def test_leaving_out_everything_is_an_error(library):
    snapshot = take_snapshot(library)
    every = frozenset(build_hypergraph(snapshot, load_sources(snapshot), own=True).names)
    with pytest.raises(ValueError, match="leaves out every reason"):
        generate(library, not_because=every)


def test_lowered_reason_has_a_quarter_of_its_weight_until_restored(library):
    was_refreshed = library.is_refreshed

    def odds():
        """Return the shares of the strongest edges, keyed by label."""
        return {edge.label: edge.probability for edge in Walk(take_snapshot(library)).strongest(n=10_000)}

    before = odds()
    name = "tag:clicks" if "both tagged clicks" in before else "tag:genre clicks"
    label = Walk(take_snapshot(library)).describe(name)
    other = next(o for o in before if "tagged" in o and o != label)
    lower_reason(library, name)
    assert read_factors(library) == {name: 0.25}
    assert library.is_refreshed == was_refreshed
    lowered = odds()
    assert lowered[label] / lowered[other] == pytest.approx(before[label] / before[other] / 4)
    lower_reason(library, name)
    assert read_factors(library) == {name: 0.0625}
    restore_reason(library, name)
    assert read_factors(library) == {}
    assert odds() == pytest.approx(before)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("tag:calm", True), ("artist:A & decade:1990-1999", True), ("cluster-16:3", False),
     ("tag:calm & cluster-16:3", False), (playlist.UNIFORM, False)],
)  # fmt: skip
def test_only_stable_names_can_be_lowered(library, name, expected):
    assert is_stable(name) is expected
    if not expected:
        with pytest.raises(ValueError, match="cannot be lowered permanently"):
            lower_reason(library, name)
