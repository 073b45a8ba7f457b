"""Tests of the storage of listening tests: links, grades, old libraries and copies."""

import pytest
import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.extensions.listening_tests.store import Grade, ListeningTestStore


def test_listening_test_is_stored_once_and_deleted_completely(store):
    tests = ListeningTestStore(store)
    one = tests.add("One", "abc", "{}")
    assert tests.add("Again", "abc", "{}") == one
    anna, bert = tests.invite(one, ["Anna", "Bert"])
    assert (anna.number, bert.number, bert.name, anna.consented_at) == (0, 1, "Bert", None)
    assert anna.token != bert.token
    assert tests.listener_of(bert.token) == bert
    (third,) = tests.invite(one, ["C"])
    assert third.number == 2
    tests.grade(anna.id, [Grade(0, 2, 90, 5.0), Grade(1, None, None, 6.0)])
    tests.grade(anna.id, [Grade(0, 1, 40, 7.0)])
    assert tests.grades(one) == {anna.id: [Grade(1, None, None, 6.0), Grade(0, 1, 40, 7.0)], bert.id: [], third.id: []}
    tests.consent(anna.id, 8.0)
    tests.consent(anna.id, 9.0)
    assert tests.listeners(one)[0].consented_at == 8.0
    tests.delete(one)
    assert tests.all() == tests.listeners(one) == []
    with store.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM grades")) == 0
    with pytest.raises(NotFoundError, match="is not valid"):
        tests.listener_of(anna.token)
    with pytest.raises(NotFoundError, match="was deleted"):
        tests.get(one)


def test_rejects_invalid_grades_and_listeners(store):
    for wrong in ((3, 50), (-1, 50), (1, 101), (1, -1), (None, 50), (1, None)):
        with pytest.raises(ValueError, match=r"category|fine"):
            Grade(0, *wrong, 1.0)
    one = ListeningTestStore(store).add("One", "abc", "{}")
    with pytest.raises(ValueError, match="at most 200"):
        ListeningTestStore(store).invite(one, ["A"] * 201)
    assert ListeningTestStore(store).listeners(one) == []


def test_small_copy_restores_tests_and_links(store):
    tests = ListeningTestStore(store)
    one = tests.add("One", "abc", "{}")
    (anna,) = tests.invite(one, ["Anna"])
    tests.grade(anna.id, [Grade(0, 2, 90, 5.0)])
    copy = store.copies.keep_now()
    tests.delete(one)
    store.copies.bring_back(copy)
    assert [test.name for test in tests.all()] == ["One"]
    assert tests.listener_of(anna.token) == anna
    assert tests.grades(one) == {anna.id: [Grade(0, 2, 90, 5.0)]}
