"""Tests of trials: fair and repeatable turns, songs that do not count, final outcomes, and hidden names."""

import csv
import json
import time
from collections import Counter

import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api.routes import routes
from musicsim.errors import LibraryError
from musicsim.explorer.playlists.queue import QueueRequest, build_queue
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.blind_radio.results import describe, results_of
from musicsim.extensions.blind_radio.store import SITTING_S, RadioStore, outcome_of, trials, turns
from musicsim.library.db import schema
from tests.command import run
from tests.library.forgetting import forget

NAMES = {"Sound", "Codewords"}


@pytest.fixture
def library(own_styles):
    return own_styles


@pytest.fixture
def store(library):
    store = RadioStore(library)
    store.start("Sound", "Codewords", 3)
    return store


def queue_of(library, seed=5, **request):
    snapshot = take_snapshot(library)
    asked = QueueRequest(query=int(snapshot.row_ids[0]), length=20, seed=seed, **request)
    return build_queue(snapshot, Walk(snapshot), asked)


def hear(library, item, *, seconds=None, gap_s=10.0):
    """Play a song, or skip it after some seconds; then, some time passes."""
    if seconds is None:
        library.player_plays.add_play(item.song.id, choice=item.choice_id)
    else:
        library.player_plays.add_skip(item.song.id, choice=item.choice_id, seconds=seconds)
    with library.write_unseen() as connection:  # time passes
        for time_of in (
            schema.judgments.c.created_at,
            schema.feedback.c.created_at,
            trials.c.started_at,
            turns.c.made_at,
        ):
            connection.execute(sa.update(time_of.table).values({time_of: time_of - gap_s}))


def turns_of(store, items):
    made = {turn.id: turn for queue in range(5, 8) for turn in store.turns_of(store.get_latest(), queue).values()}
    return [made[item.choice_id] for item in items]


def test_queue_takes_turns_only_during_a_trial(library):
    before = queue_of(library)
    assert [item.similarity is None for item in before].count(False) == 10
    assert not any(item.choice_id for item in before)
    store = RadioStore(library)
    store.start("Sound", "Codewords", 3)
    during = queue_of(library)
    assert all(item.choice_id and not item.reason and item.similarity is None for item in during)
    assert len({item.song.id for item in during}) == len(during) == 20
    store.end(store.get_latest())
    assert queue_of(library) == before


def test_coin_is_fair_and_repeatable(store):
    trial, arms = store.get_latest(), Counter()
    for previous_id in range(300):
        turn = store.add_turn(trial, 5, previous_id, 1, 2 + previous_id % 2)
        arms[turn.arm] += 1
        assert turn.song_id == {"A": 1, "B": turn.song_b}[turn.arm]
        if previous_id < 20:
            assert store.add_turn(trial, 5, previous_id, 1, turn.song_b).arm == turn.arm
    assert abs(arms["A"] - 150) < 3.3 * 75**0.5  # beyond that, the probability is 0.1%
    assert (store.add_turn(trial, 5, 1, 4, 4).arm, store.turns_of(trial, 5)[1].song_id) == ("both", 4)


def test_models_propose_as_their_own_walks_do(library, store):
    """Each model's proposal is the next song of its own walk with the same random state."""
    items = queue_of(library)
    turn = turns_of(store, items)[0]
    trial = store.get_latest()
    for model_id, proposed in ((trial.model_a, turn.song_a), (trial.model_b, turn.song_b)):
        first = turn.previous_id
        asked = PlaylistRequest(length=2, keep={0: first}, exclude=frozenset({first}), avoid_recent=False)
        own = Walk(take_snapshot(library, model_id)).generate(asked, random_state=turn.queue + 1)
        assert own.songs[1].id == proposed


def test_player_continues_by_turns_and_visitors_do_not(library, store, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    song = library.songs()[0].id
    with TestClient(Starlette(routes=routes())) as client:
        tracks = client.get("/radio", params={"song": song}).json()
        assert len(tracks) == 5
        assert all(track["choice_id"] and not track["reason"] for track in tracks)
        assert len({track["song_id"] for track in tracks} | {song}) == 6
        monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
        assert not any(track["choice_id"] for track in client.get("/radio", params={"song": song}).json())


def test_queue_stays_the_same_but_for_removed_songs(library, store):
    items = queue_of(library)
    assert queue_of(library) == items
    removed = items[4].song.id
    changed = queue_of(library, removed=frozenset({removed}))
    assert changed[:4] == items[:4]
    assert removed not in {item.song.id for item in changed}
    assert queue_of(library, seed=6) != items


def test_songs_of_both_and_first_songs_of_a_sitting_do_not_count(library, store):
    items = queue_of(library)
    made = turns_of(store, items)
    assert {turn.arm for turn in made} == {"A", "B", "both"}
    for place, item in enumerate(items):
        hear(library, item, gap_s=SITTING_S + 60 if place == 9 else 10.0)
    heard = store.settle(store.get_latest())
    assert [turn.song_id for turn in heard] == [item.song.id for item in items[:-1]], "the last song is still open"
    # a gap after song 9 makes the next one the first of a sitting
    assert [place for place, turn in enumerate(heard) if turn.is_first] == [0, 10]
    results = results_of(library)
    expected = [turn.arm for place, turn in enumerate(made[:-1]) if place not in (0, 10) and turn.arm != "both"]
    assert results.n == {"A": expected.count("A"), "B": expected.count("B")}
    assert results.n_heard == 19
    assert results.skipped == {"A": 0.0, "B": 0.0}


def test_song_counts_once_and_only_as_a_turn(library, store):
    items = queue_of(library)
    library.player_plays.add_play(items[0].song.id)  # chosen by the listener
    library.player_plays.add_play(items[3].song.id, choice=items[2].choice_id)  # another song than that of the turn
    for item in (items[1], items[1], items[2], items[5]):
        hear(library, item, seconds=6)
    assert [turn.id for turn in store.settle(store.get_latest())] == [items[1].choice_id, items[2].choice_id]


def test_outcomes_are_final(library, store):
    items = queue_of(library)
    hear(library, items[0])
    hear(library, items[1])
    library.set_feedback(items[1].song.id, -1)
    hear(library, items[2], gap_s=0)
    assert [turn.outcome for turn in store.settle(store.get_latest())] == [1.0, 0.0]
    library.set_feedback(items[1].song.id, 1)
    forget(library, items[0].song.id)
    assert [turn.outcome for turn in store.settle(store.get_latest())] == [1.0, 0.0], (
        "neither a thumb nor a removal changes it"
    )


def test_last_song_is_final_after_the_trial(library, store):
    item = queue_of(library)[0]
    library.player_plays.add_skip(item.song.id, choice=item.choice_id, seconds=0.5)
    assert store.settle(store.get_latest()) == []
    store.end(store.get_latest())
    assert [(turn.is_skip, turn.outcome) for turn in store.settle(store.get_latest())] == [
        (True, 0.25)
    ]  # a song of 2 s
    other = queue_of(library, seed=6)[0]
    assert not other.choice_id


@pytest.mark.parametrize(
    ("seconds", "duration_s", "thumb", "expected"),
    [(None, 200, 0, 1.0), (None, 200, -1, 0.0), (12, 200, 1, 1.0), (12, 200, 0, 0.2), (30, 200, 0, 0.5),
     (5, 20, 0, 0.25), (99, 20, 0, 0.5), (6, 0, 0, 0.5)],
)  # fmt: skip
def test_rule_for_outcomes(seconds, duration_s, thumb, expected):
    assert outcome_of(seconds, duration_s, thumb) == pytest.approx(expected)


def add_heard(store, arms_and_outcomes):
    """Store turns that were heard a second apart."""
    trial, start = store.get_latest(), time.time() - 1e5
    rows = [
        {"trial_id": trial.id, "queue": 1, "previous_id": place, "song_a": 1, "song_b": 2, "song_id": 1, "arm": arm,
         "made_at": start, "is_skip": outcome < 1, "is_first": False, "event_at": start + place, "outcome": outcome}
        for place, (arm, outcome) in enumerate(arms_and_outcomes)
    ]  # fmt: skip
    with store.library.write_unseen() as connection:
        connection.execute(sa.insert(turns), rows)


def test_verdict_ends_the_trial_without_names(library, store):
    add_heard(store, [("A", 1.0), ("B", 0.1)] * 100)
    results = results_of(library)
    assert results.verdict == "A"
    assert sum(results.n.values()) < 200, "songs after the verdict do not count"
    assert results.interval[0] >= 0
    assert "Verdict: you prefer A." in describe(results)
    assert not any(name in " ".join(describe(results)) for name in NAMES)
    assert not any(item.choice_id for item in queue_of(library))
    assert store.get_latest().ended_at is not None
    assert results_of(library).verdict == "A"


def test_coin_decides_which_model_is_a(library):
    store, first = RadioStore(library), Counter()
    for seed in range(40):
        store.start("Sound", "Codewords", seed)
        trial = store.get_latest()
        assert {trial.name_a, trial.name_b} == NAMES
        first[trial.name_a] += 1
        store.end(trial)
    assert min(first.values()) >= 9  # fewer of 40 have a probability of 0.03%


def test_trial_needs_two_models_plays_and_no_other_trial(library):
    store = RadioStore(library)
    with pytest.raises(LibraryError, match="with itself"):
        store.start("Sound", "Sound")
    with pytest.raises(LibraryError, match="does not have a model 'None'"):
        store.start("Sound", "None")
    library.set_setting("keep_plays", False)
    with pytest.raises(LibraryError, match="keep_plays"):
        store.start("Sound", "Codewords")
    library.set_setting("keep_plays", True)
    store.start("Sound", "Codewords")
    with pytest.raises(LibraryError, match="is running"):
        store.start("Sound", "Codewords")


def test_deleted_model_leaves_the_queue_to_the_walk(library, store):
    with library.write_unseen() as connection:  # built-in models cannot be deleted
        connection.execute(sa.update(trials).values(model_b="gone"))
    items = queue_of(library)
    assert len(items) == 20
    assert not any(item.choice_id for item in items)


def test_commands(library, tmp_path):
    def radio(*arguments):
        return json.loads(run("radio", *arguments, "--json", library=library.folder)[0])

    assert "does not have a trial yet" in run("radio", "status", library=library.folder, expect=1)[1]
    started = radio("start", "Sound", "Codewords", "--seed", "7")
    assert (started["models"], started["names"], started["n_heard"]) == (["Codewords", "Sound"], {}, 0)
    assert started["difference"] is None
    assert "random_state" not in started
    items = queue_of(library)
    for item in items:
        hear(library, item, seconds=0.5)
    status = radio("status")
    assert status["n_heard"] == 19
    assert status["skipped"] == {"A": 1.0, "B": 1.0}
    assert (status["verdict"], status["names"]) == ("", {})
    out = run("radio", "status", library=library.folder)[0]
    assert "No verdict yet. With a difference of 8 points, it takes about" in out
    assert not any(name in out for name in NAMES)
    file = tmp_path / "radio.csv"
    run("radio", "export", file, library=library.folder)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [int(row["song"]) for row in rows] == [item.song.id for item in items[:-1]]
    assert sum(row["counts"] == "True" for row in rows) == sum(status["n"].values())
    assert set(rows[0]) >= {"title", "chosen_by", "outcome"}
    assert radio("stop")["names"] == {}
    revealed = radio("stop", "--reveal")
    assert set(revealed["names"].values()) == NAMES
    trial = RadioStore(library).get_latest()
    assert revealed["names"] == {"A": trial.name_a, "B": trial.name_b}
    assert trial.revealed_at is not None
