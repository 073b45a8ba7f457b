"""What listeners preferred, and what saved playlists were drawn with."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsim.library import Library
from musicsim.library.stores.opinions import PairSummary

DETAILS = {"seed": 7, "reasons": [["same artist", 0.25], None], "settings": {"freedom": 1.5}, "ünicode": "☂"}


def test_answers_come_back_as_they_were_given(store):
    first = store.preferences.add("playlists", "native", "learned", "b", DETAILS)
    second = store.preferences.add("playlists", "learned", "native", "same")
    store.preferences.add("maps", "native", "learned", "a")
    with Library.open(store.folder) as again:
        answers = again.preferences.all("playlists")
        assert [(p.id, p.question, p.model_a, p.model_b, p.chosen, p.details) for p in answers] == [
            (first, "playlists", "native", "learned", "b", DETAILS),
            (second, "playlists", "learned", "native", "same", None),
        ]
        assert [p.winner for p in again.preferences.all()] == ["learned", None, "native"]
        assert answers[0].created_at <= answers[1].created_at


def test_an_answer_is_forgotten_alone(store):
    numbers = [store.preferences.add("playlists", "x", "y", "a") for _ in range(3)]
    store.preferences.forget(numbers[1])
    store.preferences.forget(999)
    assert [p.id for p in store.preferences.all()] == [numbers[0], numbers[2]]


def test_sides_are_summed_up_together(store):
    for a, b, chosen in (("x", "y", "a"), ("y", "x", "b"), ("y", "x", "a"), ("y", "x", "same"), ("z", "x", "a")):
        store.preferences.add("playlists", a, b, chosen)
    store.preferences.add("maps", "x", "y", "b")
    assert store.preferences.summary("playlists") == [
        PairSummary("x", "y", wins_a=2, wins_b=1, ties=1),
        PairSummary("x", "z", wins_a=0, wins_b=1, ties=0),
    ]
    assert [pair.n_answers for pair in store.preferences.summary("playlists")] == [4, 1]
    assert store.preferences.summary()[0] == PairSummary("x", "y", 2, 2, 1)
    assert store.preferences.summary("nothing") == []


def test_an_answer_is_no_change_that_pages_are_drawn_again_for(store):
    before = store.revision
    store.preferences.forget(store.preferences.add("playlists", "x", "y", "a"))
    assert store.revision == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "x", "y", "a"), "must not be empty"),
        (("playlists", "", "y", "a"), "must not be empty"),
        (("playlists", "x", "x", "a"), "compare two models"),
        (("playlists", "x", "y", "x"), "chosen='x' must be one of a, b, same"),
        (("playlists", "x", "y", "a", {"n": float("nan")}), "details"),
        (("playlists", "x", "y", "a", {"n": object()}), "details"),
    ],
)
def test_what_cannot_be_kept_is_refused(store, arguments, message):
    with pytest.raises(ValueError, match=message):
        store.preferences.add(*arguments)
    assert store.preferences.all() == []


# Details of playlists


def details_of(library):
    return {p.name: p.details for p in library.playlists()}


def test_playlists_with_details_and_without(tiny_library):
    a, b = (s.id for s in tiny_library.songs()[:2])
    lists = [("plain", None, [a]), ("drawn", None, [a, b], DETAILS), ("bare", "calm", [b], None)]
    assert tiny_library.add_playlists(iter(lists), source="saved") == 3
    with Library.open(tiny_library.folder) as again:
        assert details_of(again) == {"plain": None, "drawn": DETAILS, "bare": None}
        drawn = again.playlists()[1]
        assert (drawn.song_ids, drawn.source, drawn.category) == ((a, b), "saved", None)
        assert drawn.created_at > 1e9
        assert {drawn: 1}[drawn] == 1, "lists can be told apart by hash"


def test_details_are_of_the_list_of_that_source_name_and_category(tiny_library):
    a = tiny_library.songs()[0].id
    tiny_library.add_playlists([("mine", None, [a], {"n": 1}), ("mine", "calm", [a], {"n": 2})], source="x")
    tiny_library.add_playlists([("mine", None, [a], {"n": 3})], source="y")
    found = {(p.source, p.category): p.details for p in tiny_library.playlists()}
    assert found == {("x", None): {"n": 1}, ("x", "calm"): {"n": 2}, ("y", None): {"n": 3}}


def test_a_list_that_is_replaced_loses_its_details(tiny_library):
    a = tiny_library.songs()[0].id
    tiny_library.add_playlists([("mine", None, [a], DETAILS)], source="saved")
    tiny_library.add_playlists([("mine", None, [a])], source="saved")
    assert details_of(tiny_library) == {"mine": None}


def test_details_that_are_no_json_leave_the_lists_as_they_were(tiny_library):
    a = tiny_library.songs()[0].id
    with pytest.raises(ValueError, match="details"):
        tiny_library.add_playlists([("mine", None, [a]), ("drawn", None, [a], {"n": {1, 2}})], source="saved")
    assert tiny_library.playlists() == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(details=st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_any_json_survives(store, details):
    number = store.preferences.add("playlists", "x", "y", "a", details)
    assert store.preferences.all()[-1].details == details
    store.preferences.forget(number)
