"""Sounds that clients send: analyzed once per content, seeds of queues, explained, and dropped when there are many."""

import threading

import numpy as np
import pytest

from musicsim.api import sound_files
from musicsim.explorer.playlists.queue import build_queue, make_queue_request
from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.refresh.map_layout import place_on_map
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search import sent_sounds
from musicsim.explorer.search.explanation import explain, render_explanation
from musicsim.explorer.search.query import read_example
from musicsim.explorer.search.sent_sounds import SENT_SOUNDS, SentSounds
from musicsim.explorer.snapshot.map_encoding import from_unit
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.scan.files import content_hash
from tests.api.test_uploads import silence
from tests.sounds import write_song

SOUND = {"content-type": "application/octet-stream"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Drop the sounds of other tests; return the hashes of the files that were analyzed."""
    analyzed, decode = [], sound_files.decode_upload

    def decode_and_note(snapshot, file, *args, **options):
        analyzed.append(content_hash(file))
        return decode(snapshot, file, *args, **options)

    monkeypatch.setattr(sound_files, "decode_upload", decode_and_note)
    SENT_SOUNDS.__init__()
    return analyzed


@pytest.fixture
def song(tmp_path):
    return write_song(tmp_path / "q.flac", "noise", seed=78).read_bytes()


def send(client, data, **query):
    return client.post("/api/sounds", params=query, content=data, headers=SOUND)


def test_sound_is_analyzed_as_by_the_explorer(client, tiny_library, song):
    answer = send(client, song, name="x.flac").json()
    snapshot = take_snapshot(tiny_library)
    example = read_example(snapshot, song, "x.flac")
    assert answer["sound"] == content_hash(song)
    assert answer["duration_s"] == pytest.approx(example.duration_s)
    assert (answer["notes"], answer["is_cut"], answer["song_id"]) == ([], False, None)
    np.testing.assert_allclose(answer["peaks"], example.peaks, atol=1e-3)
    x, y = answer["place"]
    assert 0 <= x <= 1
    assert 0 <= y <= 1
    across, up = from_unit(snapshot.map_view.home, [x], [y])
    np.testing.assert_allclose([*across, *up], place_on_map(snapshot, example.vector), atol=0.05)


def test_recording_in_the_library_is_recognized(client, tiny_library):
    assert send(client, tiny_library.song(4).path.read_bytes()).json()["song_id"] == 4


def test_same_file_is_analyzed_once(client, song, fresh):
    first, second = (send(client, song, name=name).json() for name in ("a.flac", "b.flac"))
    assert first == second
    assert fresh == [first["sound"]]
    send(client, song[:-1000])
    assert len(set(fresh)) == len(fresh) == 2


def test_queue_starts_from_a_sound(client, tiny_library, song):
    sound = send(client, song).json()["sound"]
    body = {"sound": sound, "length": 9, "search": {"k": 4, "per_artist": 0, "like": [3]}}
    answer = client.post("/api/queue", json=body).json()
    snapshot = take_snapshot(tiny_library)
    example = read_example(snapshot, song, "x")
    search = SearchRequest(k=4, per_artist=0, like=(3,))
    request = make_queue_request(snapshot, example, search, feedback={}, length=9)
    items = build_queue(snapshot, share_walk(snapshot), request)
    assert [item["song"]["id"] for item in answer["items"]] == [item.song.id for item in items]
    assert answer["start"] is None
    part = client.post("/api/queue", json={"sound": sound, "search": {"part": [1, 3]}})
    assert part.status_code == 200


@pytest.mark.parametrize("model", [None, "Codewords"])
def test_explanation_is_that_of_the_explorer(client, tiny_library, song, model):
    sound = send(client, song).json()["sound"]
    query = {"other": 2, "name": "my <b>song</b>"} | ({"model": model} if model else {})
    answer = client.get(f"/api/sounds/{sound}/why", params=query).json()
    record = tiny_library.models.find(model).id if model else None
    snapshot = take_snapshot(tiny_library, record)
    expected = render_explanation(explain(snapshot, read_example(snapshot, song, "my <b>song</b>"), 2))
    assert answer["songs"] == expected["songs"]
    assert [one["id"] for one in answer["songs"]] == [None, 2]
    assert answer["similarity"] == pytest.approx(expected["similarity"], abs=1e-3)


def test_unknown_sound_must_be_sent_again(client, tiny_library, song):
    snapshot = take_snapshot(tiny_library)
    small = SentSounds(max_sounds=2)
    name = send(client, song).json()["sound"]
    kept = SENT_SOUNDS.find(snapshot, name).sound
    for other in ("a", "b", "c"):
        small.keep(snapshot, other, other, kept)
        assert small.find(snapshot, "b" if other == "c" else other) is not None
    assert [small.find(snapshot, other) is None for other in ("a", "b", "c")] == [True, False, False]
    SENT_SOUNDS.__init__()
    for answer in (
        client.post("/api/queue", json={"sound": name}),
        client.get(f"/api/sounds/{name}/why?other=1"),
        client.post("/api/queue", json={"sound": "nonsense"}),
    ):
        assert answer.status_code == 410
        assert answer.json()["error"].endswith("send the sound again.")
    assert send(client, song).json()["sound"] == name
    assert client.post("/api/queue", json={"sound": name}).status_code == 200


def test_bytes_are_limited_but_the_newest_sound_stays(client, tiny_library, song):
    snapshot = take_snapshot(tiny_library)
    name = send(client, song).json()["sound"]
    sent = SENT_SOUNDS.find(snapshot, name)
    bounded = SentSounds(max_bytes=int(2.5 * sent.n_bytes))
    for n in range(5):
        bounded.keep(snapshot, str(n), str(n), sent.sound)
    assert [n for n in range(5) if bounded.find(snapshot, str(n))] == [3, 4]
    tiny = SentSounds(max_bytes=1)
    tiny.keep(snapshot, "a", "a", sent.sound)
    assert tiny.find(snapshot, "a") is not None


def test_threads_share_one_cache(client, tiny_library, song):
    snapshot = take_snapshot(tiny_library)
    sound = SENT_SOUNDS.find(snapshot, send(client, song).json()["sound"]).sound
    shared, failures = SentSounds(max_sounds=3), []

    def use(number):
        try:
            for n in range(200):
                name = str((number * 7 + n) % 5)
                (shared.find(snapshot, name) or shared.keep(snapshot, name, name, sound)).example(snapshot, name)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sum(shared.find(snapshot, str(n)) is not None for n in range(5)) == 3


def test_sound_that_a_network_has_not_heard_must_be_sent_again(client, tiny_library, song, monkeypatch):
    name = send(client, song).json()["sound"]
    snapshot = take_snapshot(tiny_library)
    sound = SENT_SOUNDS.find(snapshot, name).sound
    network = type("Network", (), {"key": "ear"})()
    monkeypatch.setattr(sent_sounds, "networks_in_use", lambda _: [network])
    assert SENT_SOUNDS.find(snapshot, name) is None
    SENT_SOUNDS.keep(snapshot, name, name, sound)
    assert SENT_SOUNDS.find(snapshot, name) is not None
    monkeypatch.setattr(sent_sounds, "networks_in_use", lambda _: [])
    assert SENT_SOUNDS.find(snapshot, name) is not None


def test_whole_file_is_another_sound(client, tmp_path, monkeypatch, fresh):
    monkeypatch.setattr("musicsim.api.sounds.MINUTES", 2)
    data = silence(tmp_path / "long.flac", 3)
    cut, whole = send(client, data).json(), send(client, data, whole=True).json()
    assert (cut["is_cut"], whole["is_cut"]) == (True, False)
    assert cut["notes"] == ["Only the first 2 minutes were analyzed."]
    assert cut["sound"] != whole["sound"]
    assert whole["duration_s"] == pytest.approx(180, abs=1)
    assert client.post("/api/queue", json={"sound": whole["sound"]}).status_code == 200


def test_visitors_send_sounds_but_not_whole_ones(client, song, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert send(client, song).status_code == 200
    refused = send(client, song, whole=True)
    assert refused.status_code == 403
    assert "only its owner" in refused.json()["error"]
    large = client.post("/api/sounds", content=b"x", headers=SOUND | {"content-length": str(21 << 20)})
    assert large.status_code == 413


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [(b"x=1", {"content-type": "text/plain"}, 415), (b"no sound", SOUND, 422), (b"", SOUND, 422)],
)
def test_other_bodies_are_refused(client, data, headers, status):
    assert client.post("/api/sounds", content=data, headers=headers).status_code == status


def test_full_line_of_files_is_shared_with_similar(client, song, monkeypatch):
    monkeypatch.setattr(sound_files, "upload_slots", threading.BoundedSemaphore(1))
    assert sound_files.upload_slots.acquire()
    answers = [client.post(f"/api/{path}", content=song, headers=SOUND) for path in ("sounds", "similar")]
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(answer.headers["Retry-After"] for answer in answers)


def test_queue_takes_a_song_or_a_sound(client, song):
    sound = send(client, song).json()["sound"]
    answer = client.post("/api/queue", json={"sound": sound, "song": 1})
    assert (answer.status_code, answer.json()["detail"]) == (422, "give either `song` or `sound`.")
