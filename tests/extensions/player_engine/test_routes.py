"""Tests of HTTP requests of players and server plugins: a real client, recorded requests, and malformed ones."""

import hashlib
import json
import os
import shutil
import threading
from pathlib import Path
from uuid import UUID
from xml.etree import ElementTree

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes
from musicsim.extensions.player_engine import answering
from musicsim.extensions.player_engine.access import PlayerRules, answer_players, refuse_players
from musicsim.extensions.player_engine.jellyfin import jellyfin_id
from musicsim.extensions.player_engine.recent import LASTS_S, RecentSongs
from musicsim.library import Library
from tests.command import run
from tests.extensions.player_engine.servers import connect_songs, server_songs
from tests.waiting import until

SPACE = "{http://subsonic.org/restapi}"
SCHEMAS = Path(os.environ.get("OPENSUBSONIC_OPENAPI", ""))
"""The folder ``openapi`` of github.com/opensubsonic/open-subsonic-api, which answers are validated with where it is."""


@pytest.fixture(scope="module")
def library(styles_library, tmp_path_factory):
    """Build thirty songs. The title of song 7 must be escaped in XML and JSON."""
    folder = tmp_path_factory.mktemp("players") / "library"
    shutil.copytree(styles_library, folder)
    with Library.open(folder) as library:
        library.edits.edit([7], {"title": 'a <b> & "c"\x0b é'})
        yield library


@pytest.fixture(scope="module")
def token(library):
    return answer_players(library, PlayerRules()).token


@pytest.fixture
def client(library, token, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    with TestClient(Starlette(routes=routes())) as client:
        yield client


@pytest.fixture
def rest(client, token):
    """Call a method with a key, and return the content of the response."""

    def call(method, **given):
        answer = client.get(f"/rest/{method}", params={"apiKey": token, "f": "json", **given})
        assert answer.status_code == 200
        return answer.json()["subsonic-response"]

    return call


@pytest.fixture
def served(library, token, monkeypatch):
    """Serve the routes from a real server, and return its port."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes()), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def salted(token, salt="c19b2d"):
    return {"u": "anna", "s": salt, "t": hashlib.md5(f"{token}{salt}".encode()).hexdigest()}


def error(answer):
    assert answer["status"] == "failed"
    return answer["error"]["code"]


# --- a real client ----------------------------------------------------------------------------


@pytest.mark.long
def test_opensubsonic_client_gets_similar_songs_and_path(served, token, library):
    libopensonic = pytest.importorskip("libopensonic")
    connection = libopensonic.Connection("http://127.0.0.1", "anna", token, port=served, app_name="test")
    assert connection.ping()
    names = {extension.name for extension in connection.get_open_subsonic_extensions()}
    assert names == {"apiKeyAuthentication", "formPost", "sonicSimilarity"}
    matches = connection.get_sonic_similar_tracks("8", 5)
    assert len(matches) == 5
    similar = [match.similarity for match in matches]
    assert similar == sorted(similar, reverse=True)
    path = connection.find_sonic_path("8", "20", 6)
    assert [path[0].entry.id, path[-1].entry.id, len(path)] == ["8", "20", 6]
    song = library.song(int(matches[0].entry.id))
    assert (matches[0].entry.title, matches[0].entry.artist) == (song.title, song.artist)
    assert connection.get_similar_songs2("8", 5)


# --- OpenSubsonic -----------------------------------------------------------------------------

CALLS = {
    "ping": {},
    "getOpenSubsonicExtensions": {},
    "tokenInfo": {},
    "getSonicSimilarTracks": {"id": "7", "count": "5"},
    "findSonicPath": {"startSongId": "7", "endSongId": "20", "count": "6"},
    "getSimilarSongs": {"id": "8"},
    "getSimilarSongs2": {"id": "8"},
}


@pytest.mark.parametrize("method", CALLS)
def test_xml_matches_json(client, token, method):
    given = {"apiKey": token, **CALLS[method]}
    from_json = client.get(f"/rest/{method}.view", params={**given, "f": "json"}).json()["subsonic-response"]
    answer = client.post(f"/rest/{method}", data=given)
    assert answer.headers["content-type"].startswith("application/xml")
    assert from_json["status"] == "ok"
    assert flat(ElementTree.fromstring(answer.content)) == plain(from_json)


def flat(element):
    """Flatten an element to pairs of names and texts, in order."""
    found = [(name, value) for name, value in element.attrib.items()]
    for child in element:
        name = child.tag.removeprefix(SPACE)
        found += [(name, child.text)] if child.text else [(name, part) for part in flat(child)]
    return sorted(found, key=str)


def plain(content):
    """Flatten a JSON object to the same form."""
    found = []
    for name, value in content.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                found += [(name, inner) for inner in plain(part)]
            else:
                text = str(part).lower() if isinstance(part, bool) else str(part)
                found.append((name, text.replace("\x0b", "\ufffd")))
    return sorted(found, key=str)


@pytest.mark.skipif(
    not (SCHEMAS / "openapi.json").is_file(),
    reason="OPENSUBSONIC_OPENAPI names no folder of its schemas, which no package has",
)
@pytest.mark.parametrize("method", [*CALLS, "failed"])
def test_responses_match_opensubsonic_schemas(rest, method):
    from jsonschema import Draft4Validator
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT4

    def retrieve(address):
        return Resource(json.loads(Path(address.removeprefix("file://")).read_text()), DRAFT4)

    path = f"{SCHEMAS.absolute()}/endpoints/{method if method != 'failed' else 'ping'}.json"
    said = json.loads(Path(path).read_text())["get"]["responses"]["200"]
    if "$ref" in said:
        path = os.path.normpath(Path(path).parent / said["$ref"])
        said = json.loads(Path(path).read_text())
    reference = os.path.normpath(Path(path).parent / said["content"]["application/json"]["schema"]["$ref"])
    validator = Draft4Validator({"$ref": f"file://{reference}"}, registry=Registry(retrieve=retrieve))
    answer = rest(method, **CALLS.get(method, {"apiKey": "wrong"}))
    assert answer["status"] == ("failed" if method == "failed" else "ok")
    validator.validate({"subsonic-response": answer})
    assert not validator.is_valid({"subsonic-response": {**answer, "version": 3}}), "the schema is looked at"


def test_similarities_are_sorted_and_limited_to_count(rest):
    for n in (1, 5, 9999):
        found = rest("getSonicSimilarTracks", id="7", count=n)["sonicMatch"]
        values = [match["similarity"] for match in found]
        assert values == sorted(values, reverse=True)
        assert 0 <= values[-1] <= values[0] <= 1
        assert len(values) == min(n, 29)  # two songs by each of fifteen artists, except the query
        assert all(isinstance(match["entry"]["id"], str) for match in found)
    assert len(rest("getSonicSimilarTracks", id="7")["sonicMatch"]) == 10


@pytest.fixture
def clock(monkeypatch):
    """Empty the memory of songs that players got, and return the time that it uses, in a list."""
    now = [0.0]
    monkeypatch.setattr(answering, "RECENT", RecentSongs(lambda: now[0]))
    return now


@pytest.fixture
def next_song(client, token):
    """Ask for one song that is similar to another, as a player does that plays it next; both are ids."""

    def ask(method, song, **given):
        if method.startswith("/api"):
            headers = {"Authorization": f"Bearer {token}"}
            (track,) = client.get(method, params={"item_id": song, "n": 1, **given}, headers=headers).json()
            return track["item_id"]
        answer = client.get(f"/rest/{method}", params={"apiKey": token, "f": "json", "id": song, "count": 1, **given})
        content = answer.json()["subsonic-response"]
        if method == "getSonicSimilarTracks":
            (match,) = content["sonicMatch"]
            return match["entry"]["id"]
        (entry,) = content["similarSongs2"]["song"]
        return entry["id"]

    return ask


@pytest.mark.parametrize("method", ["getSonicSimilarTracks", "getSimilarSongs2", "/api/similar_tracks"])
def test_player_that_asks_for_one_song_at_a_time_gets_every_song(next_song, clock, method):
    songs = ["8"]
    for _ in range(29):
        songs.append(next_song(method, songs[-1]))
    assert len(set(songs)) == 30
    # afterward, the song that was played longest ago is next
    assert [next_song(method, songs[-1]), next_song(method, "8")] == songs[:2]


def test_songs_are_left_out_for_an_hour_for_the_same_player_only(next_song, clock, rest):
    first = next_song("getSonicSimilarTracks", "8", c="Phone")
    second = next_song("getSonicSimilarTracks", "8", c="Phone")
    assert second != first
    assert next_song("getSonicSimilarTracks", "8", c="Tablet") == first
    best = [match["entry"]["id"] for match in rest("getSonicSimilarTracks", id="8", c="Phone")["sonicMatch"]]
    assert {first, second} <= set(best), "lists are always complete"
    clock[0] = LASTS_S
    assert next_song("getSonicSimilarTracks", "8", c="Phone") == first


def test_path_starts_and_ends_with_given_songs(rest):
    path = rest("findSonicPath", startSongId="7", endSongId="20", count=5)["sonicMatch"]
    assert [path[0]["entry"]["id"], path[-1]["entry"]["id"], len(path)] == ["7", "20", 5]
    assert path[0]["similarity"] == 1


def test_invalid_token_gives_protocol_error(client, token):
    def code(**given):
        answer = client.get("/rest/ping.view", params={"f": "json", **given}).json()["subsonic-response"]
        return 0 if answer["status"] == "ok" else error(answer)

    good = salted(token)
    assert [code(apiKey=token), code(**good), code(**salted(token, "another"))] == [0, 0, 0]
    assert code(**good, apiKey=token) == code(u="anna", apiKey=token) == 43
    assert code(**good, p="x") == 43
    assert code(u="anna", p=token) == code(u="anna", p="enc:00") == 42
    assert code(apiKey="wrong") == code(apiKey="é\udc80".encode(errors="replace")) == 44
    assert code() == code(u="anna") == code(u="anna", t=good["t"]) == code(t=good["t"], s=good["s"]) == 10
    assert code(**salted("wrong")) == code(**{**good, "s": "other"}) == code(**{**good, "t": ""} | {"t": "x"}) == 40
    public = client.get("/rest/getOpenSubsonicExtensions?f=json").json()["subsonic-response"]
    assert public["status"] == "ok", "the protocol wants this one method to be public"
    assert client.get("/rest/ping").text.count('status="failed"') == 1


NONSENSE = ["0", "-1", "999", "so-999", "al-1", "1.0", "1e3", "٣", "x" * 5000, "9" * 5000, "\0", "\ud83c", "../1", "'"]


def test_unknown_ids_give_protocol_error(rest):
    assert rest("getSonicSimilarTracks", id="12") == rest("getSonicSimilarTracks", id="so-12")
    for item_id in NONSENSE:
        sent = item_id.encode(errors="replace")
        assert error(rest("getSonicSimilarTracks", id=sent)) == 70
        assert error(rest("findSonicPath", startSongId="7", endSongId=sent)) == 70
    for method in ("getSonicSimilarTracks", "findSonicPath", "getSimilarSongs", "getSimilarSongs2"):
        assert error(rest(method)) == 10
        assert error(rest(method, id="", startSongId="7")) == 10
    for count in ("0", "-3", "x", "9" * 5000):
        assert error(rest("getSonicSimilarTracks", id="7", count=count)) == 0
    assert error(rest("stream", id="7")) == 0


@pytest.mark.long
def test_handles_ten_thousand_unknown_ids(library, token, monkeypatch):
    from musicsim.extensions.player_engine.subsonic import respond

    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    codes = []
    for i in range(10_000):
        given = {"apiKey": token, "f": "json", "id": f"{'so-' if i % 2 else ''}{10**6 + i}"}
        content = json.loads(respond("getSonicSimilarTracks", given).body)["subsonic-response"]
        codes.append(error(content))
    assert codes == [70] * 10_000


def test_rejects_too_long_form(client):
    answer = client.post("/rest/ping", content=b"f=json&x=" + b"y" * (1 << 17))
    assert answer.status_code == 200
    assert ElementTree.fromstring(answer.content).get("status") == "failed"


def test_disabled_access_gives_404(client, library, token):
    kept = (library.folder / "players.json").read_bytes()
    refuse_players(library)
    try:
        for path in ("rest/ping", f"rest/ping?apiKey={token}", "api/similar_tracks?item_id=7", "api/health"):
            answer = client.get(f"/{path}", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 404
            assert "musicsim players" in answer.json()["error"]
    finally:
        (library.folder / "players.json").write_bytes(kept)


def test_token_is_in_no_response_or_log(client, token, library, caplog):
    caplog.set_level(0)
    said = [client.get(f"/rest/{method}?apiKey={token}").text for method in CALLS]
    said += [client.get(f"/players/{token}/api/similar_tracks?item_id={i}").text for i in ("7", "999")]
    (library.folder / "players.json").rename(library.folder / "kept")
    (library.folder / "players.json").write_text(f'{{"token": "{token}", "rules": 3}}')
    try:
        said.append(client.get("/rest/ping?f=json").text)
        assert error(json.loads(said[-1])["subsonic-response"]) == 0
        refused = client.get("/api/similar_tracks?item_id=7")
        assert refused.status_code == 409
        assert str(library.folder) not in refused.text
    finally:
        (library.folder / "kept").replace(library.folder / "players.json")
    said += [record.getMessage() for record in caplog.records if record.name.startswith("musicsim")]
    assert any("players.json" in line for line in said)
    assert not any(token in line for line in said)


# --- plugins of music servers, from their public source ---------------------------------------


@pytest.fixture
def ask(client, token):
    """Send a GET request as a plugin does, with its token. Return status and content."""

    def get(path, headers=None):
        answer = client.get(path, headers={"Authorization": f"Bearer {token}"} if headers is None else headers)
        return answer.status_code, answer.json()

    return get


def tracks(rows):
    """Convert rows to those of the Navidrome plugin: four texts and a number."""
    for row in rows:
        assert [type(row[name]) for name in ("item_id", "title", "author", "album")] == [str] * 4
        assert isinstance(row["distance"], float)
        assert 0 <= row["distance"] <= 1
    return [row["item_id"] for row in rows]


def test_navidrome_plugin_works(ask):
    """Source: AudioMuse-AI-NV-plugin, main.go and audiomuse_api.go."""
    status, found = ask("/api/similar_tracks?eliminate_duplicates=true&item_id=7&n=50&radius_similarity=true")
    assert (status, len(tracks(found))) == (200, 29)
    status, path = ask(
        "/api/find_path?count=25&end_song_id=20&max_steps=25&mood_pct=100&path_fix_size=false&start_song_id=7"
    )
    assert status == 200
    assert (tracks(path["path"])[0], tracks(path["path"])[-1]) == ("7", "20")
    assert path["total_distance"] > 0
    status, artists = ask("/api/similar_artists?artist=Artist+0&include_component_matches=true&n=10")
    assert (status, len(artists)) == (200, 10)
    for artist in artists:
        assert (type(artist["artist"]), type(artist["artist_id"])) == (str, str)
        for match in artist["component_matches"]:
            for which in (1, 2):
                songs = match[f"artist{which}_representative_songs"]
                assert songs
                assert {type(song[name]) for song in songs for name in ("item_id", "title")} == {str}
    assert ask("/api/similar_artists?artist=Artist+0&include_component_matches=false&n=3")[0] == 200
    assert ask("/api/similar_tracks?item_id=999&n=10&eliminate_duplicates=true&radius_similarity=true")[0] == 404


def test_jellyfin_plugin_works(ask, library):
    """Source: audiomuse-ai-plugin, AudioMuseService.cs, SimilarTrackSearch.cs.

    Ids have 32 hexadecimal digits, and n can be 200.
    """
    own = jellyfin_id(str(library.song(7).path))
    status, found = ask(f"/api/similar_tracks?n=200&item_id={own}")
    assert (status, len(tracks(found))) == (200, 29)
    assert all(UUID(item_id).hex == item_id for item_id in tracks(found))
    assert ask("/api/similar_tracks?n=200&item_id=0b5c5b9e8b0a4c0e9d2f1c2d3e4f5a6b")[0] == 404
    status, found = ask("/api/similar_tracks?n=5&title=Song%203%201&artist=Artist%203&eliminate_duplicates=false")
    assert (status, len(tracks(found))) == (200, 5)
    assert ask("/api/similar_artists?n=3&artist=Artist%203&ef_search=100&include_component_matches=false")[0] == 200
    lost = "/api/similar_tracks?n=5&item_id=0b5c5b9e8b0a4c0e9d2f1c2d3e4f5a6b&title=Song%203%201&artist=Artist%203"
    assert ask(lost) == ask("/api/similar_tracks?n=5&title=Song%203%201&artist=Artist%203")
    assert ask("/api/find_path?start_song_id=7&end_song_id=20&max_steps=4")[0] == 200
    assert ask("/api/similar_tracks")[0] == ask("/api/find_path?start_song_id=7")[0] == 400
    assert ask("/api/similar_artists?n=3")[0] == 400


def test_ampache_plugin_works_with_token_in_path(ask, library, token):
    """Source: ampache/ampache, AmpacheAudioMuse.php. It sends a number first, then so-<number>."""
    connect_songs(library, "ampache", {song.id: f"so-{song.id + 50}" for song in library.songs()})
    try:
        base, headers = f"/players/{token}", {"Accept": "application/json"}
        for item_id in ("57", "so-57"):
            status, found = ask(f"{base}/api/similar_tracks?item_id={item_id}&n=10", headers)
            assert (status, len(tracks(found))) == (200, 10)
            assert all(other.startswith("so-") for other in tracks(found))
        status, path = ask(f"{base}/api/find_path?start_song_id=so-57&end_song_id=so-70&max_steps=5", headers)
        assert (status, tracks(path["path"])[0], tracks(path["path"])[-1]) == (200, "so-57", "so-70")
        assert ask("/players/wrong/api/similar_tracks?item_id=so-57&n=10", headers)[0] == 401
    finally:
        server_songs(library).forget("ampache")


def test_lyrion_plugin_works(ask):
    """Source: lyrion-audiomuseai-plugin, API.pm. Ids are digits."""
    assert ask("/api/health") == (200, {"status": "ok"})
    status, found = ask("/api/similar_tracks?item_id=7&n=25&eliminate_duplicates=true")
    assert status == 200
    assert all(item_id.isdigit() for item_id in tracks(found))
    status, path = ask("/api/find_path?start_song_id=7&end_song_id=20&max_steps=10")
    assert (status, len(path["path"])) == (200, 10)


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic eDp5", "Bearer é"])
def test_plugin_without_token_is_rejected(client, header):
    answer = client.get("/api/similar_tracks?item_id=7", headers={"Authorization": header.encode()})
    assert answer.status_code == 401
    assert "musicsim players" in answer.json()["error"]


def test_invalid_plugin_requests_give_clear_error(ask):
    for item_id in NONSENSE:
        sent = item_id.encode(errors="replace")
        assert ask(f"/api/similar_tracks?item_id={percent(sent)}")[0] == 404
        assert ask(f"/api/find_path?start_song_id=7&end_song_id={percent(sent)}")[0] == 404
        assert ask(f"/api/similar_artists?artist={percent(sent)}")[0] == 404
    for n in ("x", "-1", "9" * 5000):
        assert ask(f"/api/similar_tracks?item_id=7&n={n}")[0] == 400


def percent(sent):
    return "".join(f"%{byte:02x}" for byte in sent)


# --- the command line -------------------------------------------------------------------------


def test_cli_shows_token_and_rules(styles_library, tmp_path):
    shutil.copytree(styles_library, tmp_path / "library")

    def said(*arguments):
        return json.loads(run("players", *arguments, "--json", library=tmp_path / "library")[0])

    assert said("--show") == {"token": None, "rules": {}}
    given = said("--no-folder", tmp_path / "x", "--no-artist", "A", "--seconds", 60, 600, "--per-artist", 1)
    assert given["rules"] == {
        "no_folder": [str(tmp_path / "x")], "no_artist": ["A"], "seconds": [60.0, 600.0], "per_artist": 1,
    }  # fmt: skip
    assert said("--show") == given
    assert said()["token"] == given["token"] != said("--new-token")["token"]
    assert run("players", library=tmp_path / "library")[0].startswith("token: ")
    assert said("--off") == said("--show") == {"token": None, "rules": {}}
