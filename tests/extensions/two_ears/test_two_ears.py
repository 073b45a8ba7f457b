"""Tests of two people's models in a library: the check of a difference, blind questions, and the command."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.extensions.two_ears.ears import TwoEars, list_ears
from musicsim.extensions.two_ears.questions import describe, list_answers, next_question, record, summarize
from tests.command import run
from tests.extensions.two_ears.people import train_two

pytestmark = pytest.mark.long


@pytest.fixture
def trained(taught):
    train_two(taught, 80)
    return taught


def test_two_people_answer_the_same_blind_questions(trained):
    two = TwoEars([snapshot_under(trained, f"{name}'s ear") for name in ("Ann", "Ben")])
    assert two.people == ("Ann", "Ben")
    assert two.is_difference_shown is True
    assert [record.name for record in list_ears(trained)] == ["Ann's ear", "Ben's ear"]
    rng, asked = np.random.default_rng(0), []
    for _ in range(20):
        question = next_question(two, list_answers(two, trained), two.ears[0], rng)
        asked.append(question.song_ids)
        record(trained, question, 1)
    assert len(set(asked)) == 20
    first = next_question(two, list_answers(two, trained), two.ears[1], rng)
    other = next_question(two, list_answers(two, trained), two.ears[1], rng, [first])
    assert (first.song_ids, other.song_ids) == tuple(asked[:2]), "a skipped question is not asked again"
    for song_ids in asked:
        question = next_question(two, list_answers(two, trained), two.ears[1], rng)
        assert question.song_ids == song_ids, "the friend gets the same questions"
        record(trained, question, 1 + question.is_dividing)
    answers = list_answers(two, trained)
    results = summarize(two, answers)
    assert (results.divided.share, results.random.share) == (1, 0)
    assert results.divided.n + results.random.n == 20
    assert 0 < results.divided.n < 20
    own = [(one.context["p"][0] > 0.5) for one in answers if one.context["person"] == "Ann"]
    assert results.predicted[two.model_ids[0], two.model_ids[0]].share == pytest.approx(np.mean(own))
    assert describe(two, results)[0].startswith(
        f"You disagreed on {results.divided.n} of {results.divided.n} dividing triples (100%"
    )


def test_command_compares_and_saves_a_playlist(trained, tmp_path):
    first = trained.songs()[0].id
    words = ("two-ears", "Ben's ear", "--model", "Ann's ear", "-n", 6, "--first", first, "--save", "Us", "--json")
    told = json.loads(run(*words, library=trained.folder)[0])
    assert [one["name"] for one in told["people"]] == ["Ann", "Ben"]
    assert told["is_difference_shown"] is True
    assert 0 < len(told["surest"]) <= told["dividing"] < told["triples"]
    songs = [one["song"]["id"] for one in told["songs"]]
    assert songs[0] == first
    assert len(set(songs)) == 6
    assert all("Ann: " in one["reason"] and "Ben: " in one["reason"] for one in told["songs"][1:])
    assert next(one for one in trained.playlists() if one.name == "Us").song_ids == tuple(songs)
    _, said = run("two-ears", "Ann's ear", "--model", "Ann's ear", library=trained.folder, expect=1)
    assert "models of two people" in said


def test_command_takes_a_friends_file(tiny_library, tmp_path):
    train_two(tiny_library, 80)
    record = tiny_library.models.find("Ben's ear")
    save_model_file(tiny_library, record.id, tmp_path / "ben.musicsim")
    tiny_library.models.delete(record.id)
    words = ("two-ears", tmp_path / "ben.musicsim", "--model", "Ann's ear", "--json")
    told = json.loads(run(*words, library=tiny_library.folder)[0])
    assert [one["name"] for one in told["people"]] == ["Ann", "Ben"]
    assert told["is_difference_shown"] is True, "Ann's answers are in this library"


def test_same_taste_divides_nothing(taught):
    train_two(taught, 80, columns=((0,), (0,)))
    two = TwoEars([snapshot_under(taught, f"{name}'s ear") for name in ("Ann", "Ben")])
    assert two.is_difference_shown is False
    assert len(two.find_dividing()) == 0
    with pytest.raises(ModelError, match="models of two people"):
        TwoEars([snapshot_under(taught, "Ann's ear")] * 2)
