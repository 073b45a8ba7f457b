"""Tests of blind questions about reasons: the false reason is never true, and listeners are recovered."""

import json
import shutil
from collections import Counter
from functools import cache

import numpy as np
import pytest

from musicsim import playlist
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.playlists.walk import ShuffleWalk, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.blind_reasons.question import KIND, describe, draw_question, record, summarize
from musicsim.library import Library
from musicsim.library.stores.judgments import opinions_in_memory
from tests.command import run

REQUEST = PlaylistRequest(length=8, spacing=0, surprise=0.5)


@pytest.fixture
def library(styles_library, tmp_path):
    """Open thirty songs with random tags, so that edges of similar size overlap in many ways."""
    shutil.copytree(styles_library, tmp_path / "own")
    rng = np.random.default_rng(7)
    with Library.open(tmp_path / "own") as opened:
        rows = [
            {"song_id": song.id, "tag": tag, "weight": 1.0}
            for song in opened.songs()
            for tag in ("calm", "dark", "warm", "old", "live")
            if rng.random() < 0.5
        ]
        opened.add_tags(rows)
        yield opened


@pytest.fixture
def walk(library):
    return Walk(take_snapshot(library))


def members_of(snapshot):
    """Return the ids of the songs of each edge, keyed by the edge's name, from the dense incidence matrix."""
    graph = build_hypergraph(snapshot, load_sources(snapshot), own=True)
    inside = graph.incidence.toarray()
    ids = snapshot.row_ids
    return {name: set(ids[inside[:, e]].tolist()) for e, name in enumerate(graph.names)}


def test_false_reason_is_never_true(walk):
    members = members_of(walk.snapshot)

    @cache
    def say(name):
        """Describe the parts of an edge as the question does."""
        parts = [f"{family}:{value}" for family, value in playlist.name_parts(name)]
        return {walk.true_and_false_reasons(*sorted(members[n])[:2], n)[0].label for n in parts}

    n_asked = 0
    names = [name for name in members if name != playlist.UNIFORM]
    for name in np.random.default_rng(0).choice(names, 40, replace=False).tolist():
        inside = members[name]
        for first, second in (sorted(inside)[:2], sorted(inside)[-2:]):
            stated, others = walk.true_and_false_reasons(first, second, name)
            assert stated.name == name
            n_asked += bool(others)
            held = set().union(*(say(n) for n in names if {first, second} <= members[n]))
            for other in others:
                songs = members[other.name]
                assert first in songs
                assert second not in songs
                assert not say(other.name) <= held, "the words are false, too"
                assert len(inside) / 2 <= len(songs) <= 2 * len(inside)
                assert other.label != stated.label
    assert n_asked > 20


def test_every_suitable_edge_can_be_the_false_reason(walk):
    members = members_of(walk.snapshot)
    n_found = 0
    for name in (n for n in members if n.startswith("tag:") and " & " not in n):
        first, second = sorted(members[name])[:2]
        size = len(members[name])
        expected = {
            n for n, songs in members.items()
            if first in songs and second not in songs and size / 2 <= len(songs) <= 2 * size
        }  # fmt: skip
        found = {other.name for other in walk.true_and_false_reasons(first, second, name)[1]}
        assert found <= expected
        # an edge is left out only if its words are true, such as those of a group by sound with a shared name
        assert all("cluster-" in n for n in expected - found)
        n_found += len(found)
    assert n_found > 10


def test_same_seed_asks_same_question_in_random_order(walk):
    question = draw_question(walk, REQUEST, 3)
    assert question == draw_question(walk, REQUEST, 3)
    places = Counter(draw_question(walk, REQUEST, seed).true for seed in range(30))
    assert min(places.values()) >= 5  # below 5 of 30 has a probability of 0.0001
    members = members_of(walk.snapshot)
    ids = {song.id for song in question.songs}
    assert ids <= members[question.reasons[question.true].name]
    assert not ids <= members[question.reasons[1 - question.true].name]


def test_steps_without_false_reason_are_not_asked(library):
    assert draw_question(ShuffleWalk(take_snapshot(library)), REQUEST, 0) is None, "random jumps state no reason"


def test_simulated_listener_is_recovered_within_interval(walk):
    rng = np.random.default_rng(5)
    questions = [draw_question(walk, REQUEST, seed) for seed in range(10)]
    for p in (0.5, 0.7, 0.9):
        n_covered = 0
        for _ in range(30):
            opinions = opinions_in_memory()
            for question in questions * 3:
                hears = rng.random() < p
                record(opinions, question, question.true if hears else 1 - question.true)
            found = summarize(opinions.judgments.all(KIND)).found
            assert (found.n, found.chance) == (30, 0.5)
            n_covered += found.low <= p <= found.high
        assert n_covered >= 25  # with a coverage of 95%, fewer have a probability of 0.3%


def test_unsure_answers_do_not_count(walk):
    opinions = opinions_in_memory()
    question = draw_question(walk, REQUEST, 1)
    assert describe(summarize([])) == "No answers yet."
    record(opinions, question, None)
    assert describe(summarize(opinions.judgments.all(KIND))) == "You could not tell in 1 question."
    for chosen in [question.true] * 14 + [1 - question.true] * 6:
        record(opinions, question, chosen)
    results = summarize(opinions.judgments.all(KIND))
    assert describe(results) == (
        "You found the true reason in 14 of 20 questions (70%, 95% interval 48% to 85%). "
        "You could not tell in 1 question."
    )
    assert all((rate.n, rate.share) == (20, 0.7) for rate in results.by_family.values())
    assert results.by_family


def test_results_on_the_command_line(library, walk):
    assert run("answers", "reasons", library=library.folder)[0].strip() == "No answers yet."
    question = draw_question(walk, REQUEST, 2)
    for chosen in (0, 0, None):
        record(library, question, chosen)
    told = json.loads(run("answers", "reasons", "--json", library=library.folder)[0])
    assert (told["found"]["n"], told["unsure"]) == (2, 1)
    assert told["found"]["share"] == float(question.true == 0)
    assert [answer["chosen"] for answer in told["answers"]] == [0, 0, None]
    assert told["answers"][0]["songs"] == [song.id for song in question.songs]
    assert told["answers"][0]["edges"] == [edge.name for edge in question.reasons]
    out, _ = run("answers", "reasons", library=library.folder)
    assert "You found the true reason in" in out
    assert set(told["by_family"]) <= set(out.replace("\n", " ").split()) | {"shared playlists", "your playlists"}
