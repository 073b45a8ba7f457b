"""Tests of listening tests: made of the results of several models, frozen, taken by links, and evaluated."""

import csv
import io
import json
from itertools import pairwise

import numpy as np
import pytest

from musicsim.errors import LibraryError, ModelError, NotFoundError, OwnerOnlyError
from musicsim.explorer.libraries import open_library
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.extensions.listening_tests.frozen import FrozenSong, read_test
from musicsim.extensions.listening_tests.pooling import ListeningTestRequest, PooledQuery, arrange, make_test
from musicsim.extensions.listening_tests.results import grades_csv, results_json, results_of
from musicsim.extensions.listening_tests.store import Grade, ListeningTestStore
from musicsim.extensions.listening_tests.taking_part import TakingPart, import_grades
from musicsim.library import Library

MODELS = ("Sound", "Codewords")


def request(**changed):
    return ListeningTestRequest(**{"models": MODELS, "queries": 6, "checks": 2} | changed)


def added(library, test, n=2):
    """Add the test and listeners, and return its number."""
    number = ListeningTestStore(library).add(test.name, test.digest, test.to_json())
    return number, ListeningTestStore(library).invite(number, [f"Listener {i}" for i in range(n)])


def nearest(library, model, query, n, *, same_artist):
    """Return the results of a model, from all songs."""
    hits = find_similar(snapshot_under(library, model), query.id, 30, max_per_artist=None)
    return [h.song.content_hash for h in hits if same_artist or h.song.artist != query.artist][:n]


# --- making and freezing --------------------------------------------------------------------------


@pytest.mark.parametrize("same_artist", [False, True])
def test_pairs_are_first_results_of_each_model(twelve, same_artist):
    test = make_test(twelve, request(results=2, same_artist=same_artist))
    by_hash = {song.content_hash: song for song in twelve.songs()}
    queries = {pair.query for pair in test.pairs}
    assert len(queries) == 6
    for query in queries:
        song = by_hash[test.songs[query].content_hash]
        of_query = [pair for pair in test.pairs if pair.query == query and not pair.is_check]
        for m, model in enumerate(MODELS):
            given = {test.songs[pair.result].content_hash for pair in of_query if m in pair.models}
            assert given == set(nearest(twelve, model, song, 2, same_artist=same_artist))
        assert len({pair.result for pair in of_query}) == len(of_query), "what both find is graded once"
    checks = [pair for pair in test.pairs if pair.is_check]
    assert len(checks) == 2
    assert all(pair.query == pair.result for pair in checks)
    assert len({by_hash[test.songs[q].content_hash].artist for q in queries}) == 6, "of as many artists"


def test_listening_test_is_balanced_and_round_trips(twelve):
    test = make_test(twelve, request())
    assert make_test(twelve, request()) == test
    assert make_test(twelve, request(seed=1)) != test
    assert read_test(test.to_json()) == test
    assert read_test(test.to_json()).digest == test.digest
    queries = [[test.pairs[pair].query for pair in row] for row in test.orders]
    for of in queries:
        assert sum(a != b for a, b in pairwise(of)) == 5, "results of a query stay together"
    turns = np.array([list(dict.fromkeys(of)) for of in queries])
    assert (np.sort(turns, axis=0) == np.unique(turns)[:, None]).all(), "each query is once in each place"
    assert test.order_of(0) == test.orders[0] == test.order_of(len(test.orders))


def test_rejects_too_few_songs(tiny_library):
    with pytest.raises(ModelError, match="fewer query songs"):
        make_test(tiny_library, request(queries=13))
    with pytest.raises(NotFoundError):
        make_test(tiny_library, request(models=("Sound", "none")))
    for wrong in ({"models": ("Sound",)}, {"models": ("a", "a")}, {"name": " "}, {"queries": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            request(**wrong)


def two_models(n_queries=30, **changed):
    """Make a test without a library, with one result per model."""

    def song(i):
        return FrozenSong(content_hash=f"{i:08x}", sound_hash="", title=f"=Song {i}", artist="", start_s=0.0)

    pools = [PooledQuery(song(i), [(song(1000 + 2 * i + m), (m,)) for m in (0, 1)]) for i in range(n_queries)]
    return arrange(pools, request(queries=n_queries, **changed), np.random.default_rng(0))


def test_rejects_altered_or_invalid_files():
    test = two_models(4)
    held = json.loads(test.to_json())

    def file(**parts):
        return json.dumps(held | {"test": held["test"] | parts})

    with pytest.raises(LibraryError, match="altered"):
        read_test(file(consent="Everything is kept."))
    with pytest.raises(LibraryError, match="order"):
        read_test(file(orders=[[0, 0, 1]]))
    with pytest.raises(LibraryError, match="song or model"):
        read_test(file(songs=held["test"]["songs"][:3]))
    with pytest.raises(LibraryError, match="attention check"):
        read_test(file(pairs=[{"query": 0, "result": 1, "models": []}]))
    with pytest.raises(LibraryError, match="Extra"):
        read_test(file(more=1))
    with pytest.raises(LibraryError, match="seconds"):
        read_test(file(seconds="20"))
    with pytest.raises(LibraryError, match="version 2"):
        read_test(json.dumps(held | {"version": 2}))
    for wrong in ("", "[]", "{}", "[" * 100_000, '{"format": "musicsim listening test", "version": 1}'):
        with pytest.raises(LibraryError, match="read as a listening test"):
            read_test(wrong)


# --- taking part ----------------------------------------------------------------------------------


def take(part, grade=lambda pair: (1, 50)):
    """Grade a test completely, and return its pairs in order."""
    part.consent()
    seen = []
    while part.state()["starts"]:
        place = part.state()["place"]
        pair = part.test.pairs[part.test.order_of(part.listener.number)[place]]
        seen.append(pair)
        part.grade(place, *grade(pair))
    return seen


def test_listener_can_consent_grade_and_return(twelve):
    test = make_test(twelve, request())
    number, (_, bert) = added(twelve, test)
    part = TakingPart(twelve, bert.token)
    assert not part.state()["has_consented"]
    with pytest.raises(NotFoundError):
        part.grade(0, 1, 50)
    with pytest.raises(NotFoundError):
        part.song(0, 0)
    part.consent()
    first = test.pairs[test.order_of(1)[0]]
    assert part.song(0, 1).content_hash == test.songs[first.result].content_hash
    with pytest.raises(NotFoundError):
        part.grade(1, 1, 50)
    part.grade(0, 2, 80)
    again = TakingPart(twelve, bert.token)  # as after a reload
    assert (again.state()["place"], again.state(0)["grade"]) == (1, [2, 80])
    again.grade(0, 1, 40)
    assert again.state()["place"] == 1
    assert [test.pairs[test.order_of(1)[0]], *take(again)] == [test.pairs[p] for p in test.order_of(1)]
    done = again.state()
    assert (done["place"], done["n_graded"], done["starts"]) == (len(test.pairs), len(test.pairs), [])
    assert len(ListeningTestStore(twelve).grades(number)[bert.id]) == len(test.pairs)


def test_retagged_song_is_played_and_removed_song_skipped(twelve):
    test = make_test(twelve, request(checks=0))
    _, (anna, _) = added(twelve, test)
    part = TakingPart(twelve, anna.token)
    part.consent()
    song = part.song(0, 0)
    with twelve.write() as connection:  # as a scan does when the tags of a file have changed
        connection.exec_driver_sql("UPDATE songs SET content_hash = 'ff' WHERE id = ?", (song.id,))
    assert part.song(0, 0).id == song.id
    with twelve.write() as connection:
        connection.exec_driver_sql("DELETE FROM songs WHERE id = ?", (song.id,))
    with pytest.raises(NotFoundError, match="no longer"):
        part.song(0, 0)
    part.grade(0, None, None)
    assert part.state()["place"] == 1


def test_public_demonstration_stores_grades_as_files(twelve, tmp_path, monkeypatch):
    test = make_test(twelve, request())
    number, (anna, _) = added(twelve, test)
    twelve.close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(twelve.folder))
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with pytest.raises(OwnerOnlyError, match="keep-answers"):
        TakingPart(open_library(), anna.token)
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("MUSICSIM_KEEP_ANSWERS", str(kept))
    take(TakingPart(open_library(), anna.token), lambda pair: (2, 95))
    assert TakingPart(open_library(), anna.token).state()["n_graded"] == len(test.pairs)
    (file,) = kept.iterdir()
    assert anna.token not in file.read_text() + file.name
    assert ListeningTestStore(open_library()).grades(number)[anna.id] == []
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    with Library.open(twelve.folder) as library:
        import_grades(library, file.read_bytes(), file.name)
        import_grades(library, file.read_bytes(), file.name)
        assert [p.counts for p in results_of(library, number).progress] == [True, False]
        assert ListeningTestStore(library).listeners(number)[0].consented_at > 0
        content = json.loads(file.read_bytes())
        grade = content["grades"][0]
        wrong_grades = [
            grade | wrong
            for wrong in ({"pair": -1}, {"pair": len(test.pairs)}, {"pair": "0"}, {"category": 3}, {"category": None},
                          {"fine": 101}, {"fine": "5"}, {"graded_at": -1}, {"graded_at": float("nan")}, {"more": 1})
        ]  # fmt: skip
        wrong_files = [json.dumps(content | {"grades": [one]}).encode() for one in wrong_grades]
        for wrong in (b"{}", b"x", file.read_bytes().replace(test.digest.encode(), b"0"), *wrong_files):
            with pytest.raises(LibraryError):
                import_grades(library, wrong, "x")
        assert len(ListeningTestStore(library).grades(number)[anna.id]) == len(test.pairs)


# --- results --------------------------------------------------------------------------------------


def listen(test, n_listeners, better, *, noise=15, rng):
    """Give fine scores around 40, higher by `better` for the second model's results, and pass the checks."""
    found = {}
    for listener in range(n_listeners):
        grades = []
        for place, pair in enumerate(test.pairs):
            fine = 95 if pair.is_check else 40 + better * (1 in pair.models) + noise * rng.normal()
            fine = int(np.clip(round(fine), 0, 100))
            grades.append(Grade(place, min(2, fine // 34), fine, 1.0))
        found[listener] = grades
    return found


def keep(library, test, grades):
    number, listeners = added(library, test, len(grades))
    for listener, said in zip(listeners, grades.values(), strict=True):
        ListeningTestStore(library).grade(listener.id, said)
    return number


def test_results_name_better_model_from_complete_listeners(store, rng):
    test = two_models()
    grades = listen(test, 6, 15, rng=rng)
    careless, lazy = 4, 5
    grades[careless] = [Grade(g.pair, 0, 100 * (0 in test.pairs[g.pair].models), 1.0) for g in grades[careless]]
    grades[lazy] = grades[lazy][:-1]
    found = results_of(store, keep(store, test, grades))
    assert [p.counts for p in found.progress] == [True] * 4 + [False] * 2
    assert (found.progress[careless].n_failed_checks, found.progress[lazy].n_graded) == (2, 61)
    (pair,) = found.pairs
    assert (pair.better, pair.is_sure) == (MODELS[1], True)
    assert pair.low < 15 < pair.high
    assert "“Codewords” is better than “Sound”" in pair.summary
    assert found.n_queries == 30
    assert found.models[1].mean_fine - found.models[0].mean_fine == pytest.approx(pair.difference)
    assert sum(found.models[0].shares) == pytest.approx(1)
    assert 0 < found.by_fine.alpha < 1


def test_no_grades_or_difference_gives_no_winner(store, rng):
    test = two_models()
    nothing = results_of(store, added(store, test, 0)[0])
    assert (nothing.pairs, nothing.ranks, nothing.n_queries) == ((), None, 0)
    assert np.isnan(nothing.models[0].mean_fine)
    same = results_of(store, keep(store, test, listen(test, 5, 0, rng=rng)))
    assert same.pairs[0].summary.startswith("No significant difference")


def test_unplayable_pairs_are_not_counted(store):
    test = two_models(4, checks=0)
    grades = {0: [Grade(place, *(None, None) if place == 0 else (1, 10 * place), 1.0) for place in range(8)]}
    assert results_of(store, keep(store, test, grades)).n_queries == 3


def test_grades_and_results_export_as_csv_and_json(store, rng):
    test = two_models(4)
    number = keep(store, test, listen(test, 2, 10, rng=rng))
    rows = list(csv.DictReader(io.StringIO(grades_csv(store, number).decode())))
    assert len(rows) == 2 * len(test.pairs)
    assert rows[0]["query"].startswith("'=Song"), "no spreadsheet takes it for a formula"
    assert {row["models"] for row in rows} == {"Sound", "Codewords", ""}
    said = json.loads(results_json(store, number))
    assert read_test(json.dumps(said["file"])) == test
    assert len(said["listeners"][0]["grades"]) == len(test.pairs)
    assert said["results"]["pairs"][0]["better"] in MODELS
    assert ListeningTestStore(store).listeners(number)[0].token not in json.dumps(said)
