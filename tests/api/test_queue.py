"""The queue over HTTP: the same songs as :func:`build_queue`, strict bodies, and the limits of visitors."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from musicsim.api import routes
from musicsim.audio import Descriptors
from musicsim.explorer.libraries import open_library
from musicsim.explorer.playlists import walk as walks
from musicsim.explorer.playlists.queue import Heard, QueueItem, QueueRequest, build_queue
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.rendering import list_facts
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.requested import combine_examples
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests import sounds
from tests.shared import RECORDINGS, needs_recordings
from tests.waiting import PATIENCE_S

WORDS = {"": "", "calm": "calm", "not lively fast": "not lively fast", "slow qqqq": "slow"}
"""Texts, and their parts that the libraries below know."""
N_RECORDINGS = 12

Asked = SimpleNamespace
Serve = Callable[[Path], Asked]


@pytest.fixture(scope="module")
def serve(tmp_path_factory) -> Iterator[Serve]:
    """Serve a copy of a library, to which the function may add something; return its parts, and how to ask it."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:

        def start(folder: Path, change: Callable[[Library], None] = lambda _: None) -> Asked:
            copy = tmp_path_factory.mktemp("served") / "library"
            shutil.copytree(folder, copy)
            client = stack.enter_context(TestClient(Starlette(routes=routes())))

            def ask(body: Any) -> Any:
                patch.setenv("MUSICSIM_LIBRARY", str(copy))
                return client.post("/api/queue", json=body)

            patch.setenv("MUSICSIM_LIBRARY", str(copy))
            library = stack.enter_context(open_library())
            change(library)
            snapshot = take_snapshot(library)
            return Asked(ask=ask, snapshot=snapshot, walk=Walk(snapshot), ids=snapshot.row_ids.tolist())

        yield start


def describe_songs(library: Library) -> None:
    """Give songs the descriptors that generated songs lack, and one song a thumb."""
    rng = np.random.default_rng(0)
    ids = [song.id for song in library.songs()]
    library.descriptors.save(
        {i: Descriptors(energy=float(rng.uniform(0, 9)), tempo=float(rng.uniform(60, 180))) for i in ids[:-20]}
    )
    library.set_feedback(ids[30], -1)


@pytest.fixture(scope="module")
def large(taught_folder, serve) -> Asked:
    """200 songs with listeners; one has a thumb-down."""
    return serve(taught_folder, describe_songs)


@pytest.fixture(scope="module")
def small(twelve_artists, serve) -> Asked:
    """24 songs with sounds, genres and descriptors."""
    return serve(twelve_artists)


def draw_request(draw: Callable, ids: list[int], songs: list[Any]) -> tuple[dict[str, Any], QueueRequest]:
    """Return the body of a request, and the same request in Python, without the query."""
    one, flags = st.sampled_from(ids), st.booleans()

    def some(most: int) -> list[int]:
        return draw(st.lists(one, max_size=most, unique=True)) if draw(flags) else []

    song = draw(st.none() | one)
    like, unlike, *thumbs = some(3), some(2), some(3), some(2)
    unlike = [i for i in unlike if i not in like]
    text = draw(st.sampled_from(list(WORDS)))
    if song is None and not like:
        text = text or "calm"
    genres = draw(st.sampled_from([[], sorted({s.genre for s in songs if s.genre})[:2]]))
    search = {
        "k": draw(st.integers(1, 12)), "per_artist": draw(st.integers(0, 2)), "genre": genres, "words": text,
        "like": like, "unlike": unlike, "hub_reduction": draw(st.none() | flags),
        "energy": draw(st.sampled_from([None, [1.5, 8.0]])), "no_artist": sorted({s.by for s in songs})[: draw(flags)],
    }  # fmt: skip
    votes = dict.fromkeys(thumbs[0], 1) | dict.fromkeys(thumbs[1], -1)
    heard = [{"song_id": i, "reason": "same artist", "similarity": 0.5} for i in some(3)]
    others = {
        "target": draw(st.none() | one), "calmer": draw(st.integers(-2, 2)),
        "surprise": draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])), "length": draw(st.integers(1, 40)),
        "seed": draw(st.integers(0, 3)),
    }  # fmt: skip
    pins, removed, opening = {draw(st.integers(0, 25)): i for i in some(3)}, some(4), some(3)
    body = {"song": song, "search": search, "thumbs": votes, "pins": pins, "removed": removed, "opening": opening}
    request = QueueRequest(
        search=SearchRequest(
            **{field: value for field, value in search.items() if field not in ("genre", "no_artist", "energy")}
            | {"genres": frozenset(genres), "no_artists": frozenset(search["no_artist"]), "words": WORDS[text]}
            | {"energy": search["energy"] and tuple(search["energy"])}
        ),
        thumbs=Thumbs(tuple(votes.items())), pins=pins, removed=frozenset(removed), opening=tuple(opening),
        heard=tuple(Heard(**one) for one in heard), **others,
    )  # fmt: skip
    return body | {"heard": heard} | others, request


def expect(asked: Asked, song: int | None, request: QueueRequest) -> list[QueueItem]:
    disliked = {i for i, thumb in asked.snapshot.library.feedback().items() if thumb < 0}
    query = None
    if song is not None or request.search.like:
        query = combine_examples(asked.snapshot, song, request.search)
    request = replace(request, query=query, removed=request.removed | disliked)
    return build_queue(asked.snapshot, asked.walk, request)


def facts(answer: Any) -> list[tuple[Any, ...]]:
    items = answer.json()["items"]
    return [(item["song"]["id"], item["reason"], item["similarity"], item["is_pinned"]) for item in items]


def check_request(asked: Asked, draw: Callable) -> None:
    """Draw a request; its answer must be the queue, and that of a longer one must begin with the same songs."""
    songs = asked.snapshot.songs_by_id(asked.ids)
    body, request = draw_request(draw, asked.ids, songs)
    answer = asked.ask(body)
    assert answer.status_code == 200, answer.text
    found = facts(answer)
    assert found == [
        (item.song.id, item.reason, item.similarity and round(item.similarity, 4), item.is_pinned)
        for item in expect(asked, body["song"], request)
    ]
    assert answer.json()["unknown_words"] == (["qqqq"] if "qqqq" in body["search"]["words"] else [])
    if not body["pins"]:
        longer = facts(asked.ask(body | {"length": body["length"] + 9}))
        assert longer[: len(found)] == found


@settings(max_examples=30)
@given(data=st.data())
def test_queue_is_that_of_the_explorer(large, data):
    check_request(large, data.draw)


@settings(max_examples=30)
@given(data=st.data())
def test_queue_of_few_songs_is_that_of_the_explorer(small, data):
    check_request(small, data.draw)


@pytest.mark.long
@needs_recordings
def test_queue_of_recordings_is_that_of_the_explorer(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for path in RECORDINGS[:N_RECORDINGS]:
        shutil.copy(path, folder / path.name)
    library_folder = tmp_path_factory.mktemp("library") / "recordings"
    with sounds.open_library(library_folder) as library:
        library.add(folder, n_workers=1)
        refresh(library)
    asked = serve(library_folder)

    @settings(max_examples=30)
    @given(data=st.data())
    def check(data):
        check_request(asked, data.draw)

    check()


def test_item_has_song_and_track(client, tiny_library):
    first = tiny_library.songs()[0]
    answer = client.post("/api/queue", json={"song": first.id, "length": 5}).json()
    listed = {song["id"]: song for song in client.get("/api/songs").json()}
    for item in [answer["start"], *answer["items"]]:
        song = tiny_library.song(item["song"]["id"])
        assert item["song"] == listed[song.id]
        track = item["track"]
        assert (track["song_id"], track["title"], track["artist"]) == (song.id, song.title, song.artist)
        assert (track["duration_s"], track["loudness"], track["start_s"]) == (song.duration_s, song.loudness, 0)
        assert (track["reason"], track["typical_s"]) == (item["reason"], song.typical_s)
        assert (item["facts"], item["notes"]) == (list_facts(song), song.notes)
        assert [client.get(track[name]).status_code for name in ("url", "peaks_url", "cover_url")] == [200] * 3
    assert answer["start"]["song"]["id"] == first.id
    assert len(answer["items"]) == 5


def test_client_that_cannot_wait_gets_the_nearest_songs_at_once(client, tiny_library, monkeypatch):
    started, may_end, build = threading.Event(), threading.Event(), walks.build_hypergraph

    def build_later(*args, **options):
        started.set()
        assert may_end.wait(PATIENCE_S)
        return build(*args, **options)

    monkeypatch.setattr(walks, "build_hypergraph", build_later)
    body = {"song": 1, "search": {"k": 3, "per_artist": 0}, "length": 8}
    try:
        answers = [client.post("/api/queue", json=body | {"wait": False}).json() for _ in range(3)]
        assert started.wait(PATIENCE_S)
    finally:
        may_end.set()
    assert [answer["is_complete"] for answer in answers] == [False] * 3
    snapshot = take_snapshot(tiny_library)
    search = SearchRequest(k=3, per_artist=0)
    nearest = build_queue(snapshot, None, QueueRequest(query=combine_examples(snapshot, 1, search), search=search))
    assert [item["song"]["id"] for item in answers[0]["items"]] == [item.song.id for item in nearest]
    whole = client.post("/api/queue", json=body).json()
    assert (whole["is_complete"], len(whole["items"])) == (True, 8)
    assert whole["items"][:3] == answers[0]["items"]
    assert client.post("/api/queue", json=body | {"wait": False}).json() == whole


def test_answer_describes_words_and_narrowed_energy(client, tiny_library):
    song = tiny_library.songs()[0].id
    answer = client.post("/api/queue", json={"search": {"words": "slow qqqq"}}).json()
    assert [part["text"] for part in answer["words"]] == ["slow"]
    assert answer["words"][0]["meaning"].startswith("slow for this library")
    assert (answer["unknown_words"], answer["start"], answer["energy"]) == (["qqqq"], None, None)
    calmer = client.post("/api/queue", json={"song": song, "calmer": 1}).json()
    low, high = np.add(calmer["energy"], (-1e-3, 1e-3))  # columns have single precision
    assert {item["song"]["id"] for item in calmer["items"]} <= {
        other.id for other in tiny_library.songs() if low <= other.energy <= high
    }


def test_failed_search_on_server_is_reported(client, tiny_library, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.snapshot.snapshot.Snapshot.search_trouble", "The server is down.")
    answer = client.post("/api/queue", json={"song": tiny_library.songs()[0].id}).json()
    assert answer["search_trouble"] == "The server is down."


def test_thumbs_in_search_and_in_body_count_alike(client, tiny_library):
    song, up, down = (song.id for song in tiny_library.songs()[:3])
    inside = {"song": song, "search": {"fits": [up], "does_not_fit": [down]}}
    beside = {"song": song, "thumbs": {up: 1, down: -1}}
    answers = [client.post("/api/queue", json=body).json() for body in (inside, beside)]
    assert answers[0] == answers[1]
    assert down not in [item["song"]["id"] for item in answers[0]["items"]]


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({}, 422, "`song`"),
        ({"song": 999}, 404, "song 999 does not exist"),
        ({"song": 1, "search": {"like": [999]}}, 404, "song 999 does not exist"),
        ({"song": "1"}, 422, "song:"),
        ({"song": True}, 422, "song:"),
        ({"song": 10**30}, 422, "song:"),
        ({"song": 1, "songs": [2]}, 422, "songs is not a field"),
        ({"song": 1, "search": {"genres": ["rock"]}}, 422, "search.genres is not a field"),
        ({"song": 1, "search": {"seconds": [9, 1]}}, 422, "search.seconds must be a lower and an upper bound."),
        ({"song": 1, "search": {"years": [1990]}}, 422, "search.years[1]:"),
        ({"song": 1, "search": {"k": 201}}, 422, "search.k:"),
        ({"song": 1, "search": {"by": "mood"}}, 404, "mood"),
        ({"song": 1, "search": {"like": [2], "unlike": [2]}}, 422, "song 2 is marked both like and unlike"),
        ({"song": 1, "search": {"like": [2] * 26}}, 422, "search.like:"),
        ({"song": 1, "thumbs": {"2": 3}}, 422, "thumbs.2:"),
        ({"song": 1, "pins": {"-1": 2}}, 422, "pins.-1:"),
        ({"song": 1, "pins": {str(n): 2 for n in range(501)}}, 422, "pins:"),
        ({"song": 1, "heard": [{"song_id": 2}] * 1001}, 422, "heard:"),
        ({"song": 1, "heard": [{"song_id": 2, "title": "x"}]}, 422, "heard[0].title is not a field"),
        ({"song": 1, "removed": list(range(1, 5002))}, 422, "removed:"),
        ({"song": 1, "length": 501}, 422, "length:"),
        ({"song": 1, "surprise": 2}, 422, "surprise:"),
        ([], 422, "the body:"),
    ],
)
def test_faulty_body_gives_one_sentence_that_names_the_field(client, body, status, named):
    answer = client.post("/api/queue", json=body)
    assert answer.status_code == status
    (sentence,) = answer.json().values()
    assert named in sentence
    assert sentence.endswith(".")


LONG = '{"song": ' + "9" * 5000


@pytest.mark.parametrize(
    "text", ["", "{", "null", "NaN", '{"surprise": NaN}', '{"surprise": 1e999}', "[" * 100_000, LONG]
)
def test_unreadable_body_is_no_server_error(client, text):
    answer = client.post("/api/queue", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_body_that_other_sites_could_send_is_refused(client, kind):
    headers = {"Content-Type": kind} if kind else {}
    answer = client.post("/api/queue", content=json.dumps({"song": 1}), headers=headers)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_large_body_is_cut_off(client):
    without_length = iter([b" " * (64 << 10)] * 5)
    for content in (b" " * (257 << 10), without_length):
        answer = client.post("/api/queue", content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert "256 kB" in answer.json()["detail"]


def test_visitors_get_short_queues_without_folders_or_thumbs_of_the_owner(client, tiny_library, monkeypatch):
    first, disliked, *_ = (song.id for song in tiny_library.songs())
    tiny_library.set_feedback(disliked, -1)
    body = {"song": first, "search": {"k": 11, "per_artist": 0}}
    owners = client.post("/api/queue", json=body).json()
    assert disliked not in [item["song"]["id"] for item in owners["items"]]
    assert client.post("/api/queue", json=body | {"length": 101}).status_code == 200
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    visitors = client.post("/api/queue", json=body)
    assert disliked in [item["song"]["id"] for item in visitors.json()["items"]]
    assert str(tiny_library.folder.parent) not in visitors.text
    long = client.post("/api/queue", json=body | {"length": 101})
    assert (long.status_code, long.json()["detail"]) == (422, "length must be between 1 and 100.")
    folders = client.post("/api/queue", json={"song": first, "search": {"folder": ["/"]}})
    assert folders.status_code == 403


def test_schema_has_all_options_of_a_search(client):
    asked = client.get("/api/openapi.json").json()["paths"]["/queue"]["post"]
    schema = asked["requestBody"]["content"]["application/json"]["schema"]
    search = schema["properties"]["search"]["properties"]
    assert list(search) == [option.name for option in options_of(SearchRequest).values()]
    for option in options_of(SearchRequest).values():
        assert search[option.name]["description"] == option.help
    assert "$ref" not in json.dumps(asked["requestBody"])
