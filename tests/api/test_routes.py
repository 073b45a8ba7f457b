"""Sound by id with byte ranges, outlines, and the interface for other programs."""

import io
from urllib.parse import quote

import pytest
import soundfile
from PIL import Image

from musicsim import LIBRARY_FILE
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from tests.sounds import write_song

SOUND = {"Content-Type": "application/octet-stream"}


def test_audio_supports_byte_ranges(client, tiny_library):
    song = tiny_library.songs()[0]
    whole = client.get(f"/songs/{song.id}/audio")
    assert (whole.status_code, whole.headers["content-type"]) == (200, "audio/flac")
    assert whole.content == song.path.read_bytes()
    part = client.get(f"/songs/{song.id}/audio", headers={"Range": "bytes=100-199"})
    assert part.status_code == 206
    assert part.content == whole.content[100:200]


def test_unplayable_format_is_transcoded_once(client, tiny_library, tmp_path):
    tiny_library.add(write_song(tmp_path / "x.aiff", seconds=3, seed=5))
    song = next(s for s in tiny_library.songs() if s.path.suffix == ".aiff")
    answer = client.get(f"/songs/{song.id}/audio")
    assert answer.status_code == 200
    assert answer.headers["content-type"] in ("audio/mpeg", "audio/wav")
    assert soundfile.info(io.BytesIO(answer.content)).duration == pytest.approx(3.0, abs=0.1)
    copies = list((tiny_library.folder / "cache").iterdir())
    client.get(f"/songs/{song.id}/audio")
    assert list((tiny_library.folder / "cache").iterdir()) == copies


def test_outline_values_are_between_0_and_1(client, tiny_library):
    outline = client.get(f"/songs/{tiny_library.songs()[0].id}/peaks").json()
    assert len(outline) == 400
    assert max(outline) == 1.0
    assert min(outline) >= 0.0


def test_unchanged_cover_is_not_sent_again(client, tiny_library, tmp_path):
    folder = tmp_path / "with cover"
    tiny_library.add(write_song(folder / "x.flac", seed=5))
    song = next(s for s in tiny_library.songs() if s.path.parent == folder)
    path = f"/songs/{song.id}/cover"
    drawn = client.get(path)
    assert (drawn.status_code, drawn.headers["content-type"]) == (200, "image/svg+xml")
    again = client.get(path, headers={"If-None-Match": drawn.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    Image.new("RGB", (900, 600), "red").save(folder / "cover.png")
    cover = client.get(path)
    assert (cover.status_code, cover.headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(cover.content)).size == (320, 213)
    again = client.get(path, headers={"If-None-Match": f"W/{cover.headers['etag']}"})
    assert (again.status_code, again.content) == (304, b"")
    (folder / "cover.png").write_bytes(b"<svg/>")
    answer = client.get(path, headers={"If-None-Match": cover.headers["etag"]})
    assert answer.content == drawn.content
    assert str(tmp_path) not in answer.text


@pytest.mark.parametrize(
    "path", ["/songs/999/audio", "/songs/999/cover", "/songs/999/peaks", "/songs/1/audio?library=../x"]
)
def test_unknown_path_returns_404_with_reason(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "does not exist" in answer.json()["error"]


def test_missing_file_returns_410(client, tiny_library, tmp_path):
    path = write_song(tmp_path / "gone.flac", seed=8)
    tiny_library.add(path)
    song = next(s for s in tiny_library.songs() if s.path == path)
    path.unlink()
    answer = client.get(f"/songs/{song.id}/audio")
    assert answer.status_code == 410
    assert answer.json()["error"] == f"{song.label} (song {song.id}): the file is missing. Scan its folder again."


def test_undecodable_song_error_hides_path(client, tiny_library, tmp_path):
    damaged = write_song(tmp_path / "damaged.aiff", seconds=3, seed=5)
    tiny_library.add(damaged)
    song = next(s for s in tiny_library.songs() if s.path.suffix == ".aiff")
    damaged.write_bytes(b"no sound any more")
    answer = client.get(f"/songs/{song.id}/audio")
    assert answer.status_code == 500
    assert song.label in answer.json()["error"]
    assert str(tmp_path) not in answer.text
    assert damaged.name not in answer.text


def test_unopenable_library_error_hides_path(client, tiny_library):
    broken = tiny_library.folder.parent / "broken"
    broken.mkdir()
    (broken / LIBRARY_FILE).write_bytes(b"no database")
    for what in ("audio", "cover", "peaks"):
        answer = client.get(f"/songs/1/{what}?library=broken")
        assert answer.status_code == 500
        assert "the library cannot be opened" in answer.json()["error"]
        assert str(broken.parent) not in answer.text


def test_damaged_model_error_hides_path(client, tiny_library):
    (tiny_library.models.path(tiny_library.models.active().id) / "model.json").write_text("{")
    answer = client.get("/api/songs/1/similar")
    assert answer.status_code == 409
    assert "model.json" in answer.json()["error"]
    assert str(tiny_library.folder.parent) not in answer.json()["error"]


def test_similar_songs_by_id_and_by_file(client, tiny_library):
    song = next(s for s in tiny_library.songs() if s.artist == "Artist tones")
    hits = client.get(f"/api/songs/{song.id}/similar?k=3&per_artist=0").json()
    assert [h["artist"] for h in hits] == ["Artist tones"] * 3
    data = song.path.read_bytes()
    uploaded = client.post("/api/similar?k=3&per_artist=0", content=data, headers=SOUND).json()
    assert [h["id"] for h in uploaded] == [h["id"] for h in hits]
    assert client.post("/api/similar", content=b"no sound", headers=SOUND).status_code == 422


@pytest.mark.parametrize(
    "media_type",
    [None, "", "text/plain", "Text/Plain; x=audio/wav", "application/x-www-form-urlencoded", "multipart/form-data"],
)
def test_rejects_body_with_cross_site_content_type(client, media_type):
    answer = client.post("/api/similar", content=b"x", headers={"Content-Type": media_type} if media_type else {})
    assert answer.status_code == 415
    assert "Content-Type: application/octet-stream" in answer.json()["detail"]


@pytest.mark.parametrize("media_type", ["audio/flac", "VIDEO/mp4", "application/ogg", "application/octet-stream;x=1"])
def test_accepts_body_with_audio_content_type(client, tiny_library, media_type):
    data = tiny_library.songs()[0].path.read_bytes()
    assert client.post("/api/similar", content=data, headers={"Content-Type": media_type}).status_code == 200


def test_lists_songs_and_generates_playlist(client):
    assert len(client.get("/api/songs?limit=5").json()) == 5
    assert [s["title"] for s in client.get("/api/songs?search=NOISE 1").json()] == ["Song noise 1"]
    steps = client.get("/api/playlist?length=12&seed=3").json()
    assert len(steps) == 12
    assert any(step["reason"] for step in steps)
    assert "" not in [step["reason"] for step in steps], "unknown reasons are null"
    assert client.get("/api/songs/999/similar").status_code == 404
    assert client.get("/api/openapi.json").json()["info"]["title"] == "musicsim"


def test_songs_are_listed_in_parts(client, tiny_library):
    ids = [song["id"] for song in client.get("/api/songs?limit=200").json()]
    assert sorted(ids) == [song.id for song in tiny_library.songs()]
    parts = [client.get("/api/songs", params={"limit": 5, "offset": at}).json() for at in range(0, len(ids) + 5, 5)]
    assert [song["id"] for part in parts for song in part] == ids
    assert client.get("/api/songs?offset=-1").status_code == 422


def test_schema_says_that_body_is_a_file(client):
    body = client.get("/api/openapi.json").json()["paths"]["/similar"]["post"]["requestBody"]
    assert body["required"]
    assert body["content"]["application/octet-stream"]["schema"]["format"] == "binary"


def test_model_is_selected_by_query_parameter(client, tiny_library):
    add_representation(tiny_library, RepresentationSettings("histogram"), "plain", lambda *_args, **_options: None)
    listed = client.get("/api/models").json()
    assert [(m["name"], m["kind"], m["is_active"]) for m in listed] == [
        ("Sound", "native", True),
        ("Codewords", "codewords", False),
        ("plain", "representation", False),
    ]
    tiny_library.set_setting("hub_reduction", False)
    found = {
        name: client.get("/api/songs/1/similar", params={"k": 5, "model": name}).json() for name in ("Sound", "plain")
    }
    assert found["Sound"] == client.get("/api/songs/1/similar?k=5").json()
    assert found["Sound"] != found["plain"]
    data = tiny_library.songs([1])[0].path.read_bytes()
    uploaded = client.post("/api/similar", params={"model": "plain", "k": 2}, content=data, headers=SOUND)
    assert uploaded.json()[0]["id"] == found["plain"][0]["id"]  # the song itself is not a result
    assert len(client.get("/api/playlist", params={"model": "plain", "length": 3}).json()) == 3
    missing = client.get("/api/songs/1/similar?model=other")
    assert missing.status_code == 404
    assert "'plain'" in missing.json()["error"]


def test_title_prefix_matches_come_first(client, tiny_library):
    tiny_library.edits.edit([7], {"title": "Zone of song"})
    tiny_library.edits.edit([9], {"title": "The Zone"})
    assert [s["id"] for s in client.get("/api/songs?search=zone").json()] == [7, 9]
    tiny_library.edits.edit([7], {"title": "Of the zone"})
    assert [s["title"] for s in client.get("/api/songs?search=ZONE&limit=1").json()] == ["Of the zone"]
    assert [s["id"] for s in client.get("/api/songs?limit=3").json()] == [1, 2, 3]
    assert client.get("/api/songs?search=in no title").json() == []


@pytest.mark.parametrize("song_id", [999, 2**63, 10**30])
def test_unknown_song_id_returns_404(client, song_id):
    paths = (
        f"/api/songs/{song_id}/similar",
        f"/api/songs/1/similar?fits={song_id}",
        f"/api/songs/1/similar?does_not_fit={song_id}",
        f"/songs/{song_id}/audio",
        f"/songs/{song_id}/cover",
        f"/songs/{song_id}/peaks",
    )
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert f"song {song_id} does not exist" in answer.json()["error"]
    assert client.get(f"/api/playlist?first={song_id}").status_code == 404


def test_song_cannot_both_fit_and_not_fit(client):
    answer = client.get("/api/songs/1/similar?fits=2&fits=3&does_not_fit=3")
    assert answer.status_code == 422
    assert answer.json()["detail"] == "song 3 is marked both as fitting and as not fitting: choose one."


NUMBERS = ("-1", "nan", "inf", "-inf", "1e400", str(2**63), str(10**30), f"-{10**30}", "9" * 5000, "", "\0", "1.5")


@pytest.mark.long
def test_odd_numbers_never_cause_server_error(client):
    interface = client.get("/api/openapi.json").json()["paths"]
    asked = [
        (f"/api{path}".replace("{song_id}", "1"), parameter["name"])
        for path, methods in interface.items()
        for parameter in methods.get("get", {}).get("parameters", [])
        if parameter["in"] == "query"
    ]
    assert ("/api/playlist", "seed") in asked
    for path, name in asked:
        for number in NUMBERS:
            assert client.get(path, params={name: number}).status_code < 500, (path, name, number)
    assert client.get("/api/playlist?seed=-1").status_code == 422
    for number in NUMBERS:
        assert client.get(f"/api/songs/{quote(number)}/similar").status_code in (404, 422)
        assert client.get(f"/songs/{quote(number)}/audio").status_code == 404
        assert client.get(f"/songs/{quote(number)}/peaks").status_code == 404


def test_model_settings_are_hidden_from_visitors(client, monkeypatch):
    assert "settings" in client.get("/api/models").json()[0]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert "settings" not in client.get("/api/models").json()[0]


@pytest.mark.parametrize(
    ("start", "end"), [("1e308", "1e309"), ("0", "inf"), ("-inf", "1"), ("nan", "nan"), ("-1", "2"), ("0", "1e7")]
)
def test_part_out_of_range_gives_clear_error(client, tiny_library, start, end):
    song = tiny_library.songs()[0].id
    answer = client.get(f"/api/songs/{song}/similar?part={start}&part={end}")
    assert answer.status_code == 422
    assert "part=" in answer.json()["detail"]
    assert client.get(f"/api/songs/{song}/similar?part=0&part=2").status_code == 200
