"""Tests of responses to players: ids, rules and thumbs are respected, and paths connect the requested songs."""

import json
import stat
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import numpy as np
import pytest

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import N_ENTRIES, choose_songs_of, find_similar, find_similar_artists, similarity_of
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.player_engine.access import PlayerRules, answer_players, player_access, refuse_players
from musicsim.extensions.player_engine.answering import Answering, length_of
from musicsim.extensions.player_engine.jellyfin import jellyfin_id
from musicsim.library.db import schema
from musicsim.library.stores.duplicates import SamePair
from tests.extensions.player_engine.servers import connect_server, connect_songs
from tests.simultaneous import count_lost


@pytest.fixture
def library(own_styles):
    """Thirty songs by fifteen artists of three genres, with one folder per artist."""
    return own_styles


def ids(matches):
    return [match.id for match in matches]


def connect(library, without=()):
    """Connect a server that has most songs, each with two forms of an id. Return its ids by song id."""
    there = {song.id: f"so-{song.id + 100}" for song in library.songs() if song.id not in without}
    connect_songs(library, "home", there)
    return there


# --- access -----------------------------------------------------------------------------------


def test_rejects_unknown_words(library):
    with pytest.raises(NotFoundError, match="xyzzy"):
        answer_players(library, PlayerRules(words="xyzzy"))
    assert player_access(library) is None


def test_new_token_is_not_lost_when_rules_change_at_once(library):
    answer_players(library, PlayerRules())
    tokens = {}

    def change(library, side, number):
        if side:
            answer_players(library, PlayerRules(per_artist=number))
        else:
            tokens[number] = answer_players(library, PlayerRules(), new_token=True).token

    def kept(library, side, number):
        return player_access(library).token == tokens[number]

    assert count_lost(library.folder, change, n_pairs=50, kept=kept) == 0


def test_access_is_off_by_default_and_private(library):
    assert player_access(library) is None
    given = answer_players(library, PlayerRules(no_artists={"A"}, years=(1960, 1970), exclude={3}))
    file = library.folder / "players.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert player_access(library) == given
    assert given.token not in repr(given)
    assert answer_players(library, PlayerRules()).token == given.token
    assert answer_players(library, PlayerRules(), new_token=True).token != given.token
    refuse_players(library)
    assert player_access(library) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"token": 3}', b"\xff", b'{"token": "x", "rules": {"years": [2, 1]}}']
)
def test_damaged_access_file_is_named(library, content):
    (library.folder / "players.json").write_bytes(content)
    with pytest.raises(LibraryError, match=r"players\.json cannot be read\. Remove the file"):
        player_access(library)


# --- similar songs ----------------------------------------------------------------------------


def test_similar_songs_match_search_page(library):
    answering = Answering(library, PlayerRules())
    hits = find_similar(take_snapshot(library), 7, 10)
    found = answering.similar(answering.song("7"), 10)
    assert ids(found) == [str(hit.song.id) for hit in hits]
    assert [match.similarity for match in found] == [hit.similarity for hit in hits]


def test_ids_follow_connected_server(library):
    own = Answering(library, PlayerRules(per_artist=0))
    best = [match.song.id for match in own.similar(own.song("7"), 4)]
    assert ids(own.similar(own.song("so-7"), 4)) == [str(i) for i in best]
    there = connect(library, without=best[:3])
    answering = Answering(library, PlayerRules(per_artist=0))
    for form in ("so-107", "107"):
        found = answering.similar(answering.song(form), 4)
        assert ids(found)[0] == there[best[3]]
        assert len(found) == 4
    assert len(answering.similar(answering.song("107"), 500)) == len(there) - 1
    for unknown in ("7", "so-7", "so-999", "", "x" * 5000, "\0", "1" * 5000, "٣"):
        with pytest.raises(NotFoundError):
            answering.song(unknown)


def test_rules_apply_to_similar_songs_and_paths(library):
    songs = library.songs()
    folder = songs[10].folder
    rules = PlayerRules(
        no_folders={folder}, no_artists={songs[20].artist}, exclude={songs[16].id}, duration_s=(1.0, 60.0), per_artist=1
    )
    answering = Answering(library, rules)
    found = answering.similar(answering.song(str(songs[0].id)), 30)
    path = answering.path(answering.song(str(songs[0].id)), answering.song(str(songs[10].id)), 12)
    for matches in (found, path[1:-1]):
        assert matches
        assert not {match.song.folder for match in matches} & {folder}
        assert not {match.song.artist for match in matches} & {songs[20].artist}
        assert songs[16].id not in {match.song.id for match in matches}
    assert len({match.song.artist for match in found}) == len(found)
    without_limit = answering.similar(answering.song(str(songs[0].id)), 30, is_limited=False)
    assert len(without_limit) > len(found)
    assert not Answering(library, PlayerRules(duration_s=(500.0, 600.0))).similar(answering.song("1"), 5)


def test_thumbs_down_are_respected(library):
    answering = Answering(library, PlayerRules())
    first, second, *_ = (match.song.id for match in answering.similar(answering.song("7"), 5))
    library.set_feedback(first, -1)
    library.judgments.rate_results(7, {second: -1})
    left = {match.song.id for match in answering.similar(answering.song("7"), 30, is_limited=False)}
    assert not left & {first, second}
    assert second in {match.song.id for match in answering.similar(answering.song("8"), 30, is_limited=False)}


def test_song_is_found_by_title_and_artist(library):
    answering = Answering(library, PlayerRules())
    song = library.songs()[4]
    assert answering.song_called(song.title.upper(), song.artist.lower()).query == song.id
    with pytest.raises(NotFoundError):
        answering.song_called(song.title, "nobody")


def test_jellyfin_ids_identify_songs(library):
    # md5sum of the type and the path in UTF-16, in the byte order of a GUID
    assert jellyfin_id("/media/music/Artist/Ä 01.flac") == "bbc1f5f24f581dcd66d806733d3a1ab2"
    paths = {song.id: str(song.path) for song in library.songs()}
    answering = Answering(library, PlayerRules())
    best = [jellyfin_id(paths[match.song.id]) for match in answering.similar(answering.song("7"), 5)]
    guid = UUID(jellyfin_id(paths[7]))
    for form in (guid.hex, str(guid), str(guid).upper()):
        assert ids(answering.similar(answering.song(form), 5)) == best
    path = answering.path(answering.song(guid.hex), answering.song(jellyfin_id(paths[20])), 6)
    assert (ids(path)[0], ids(path)[-1], len(path)) == (guid.hex, jellyfin_id(paths[20]), 6)
    with pytest.raises(NotFoundError):
        answering.song(UUID(int=guid.int + 1).hex)
    moved = library.song(7).path.with_name("moved.flac")
    with library.write() as connection:
        connection.execute(schema.files.update().where(schema.files.c.song_id == 7).values(path=moved))
    assert answering.song(jellyfin_id(str(moved))).query == 7
    with pytest.raises(NotFoundError):
        answering.song(guid.hex)


def test_jellyfin_music_folder_can_differ(library):
    (root,) = library.files.roots()
    song = library.song(7)
    there = jellyfin_id(f"/media/music/{song.path.relative_to(root).as_posix()}")
    answering = Answering(library, PlayerRules(jellyfin="/media/music"))
    assert answering.song(there).query == 7
    with pytest.raises(NotFoundError):
        answering.song(jellyfin_id(str(song.path)))
    called = answering.song_called(song.title, song.artist)
    assert ids(answering.songs_of(called)) == [there]
    artist = answering.artists(answering.artist(song.artist), 1)[0]
    assert answering.song(artist.entries[0].id).query == artist.entries[0].song.id
    connect(library)
    assert ids(answering.songs_of(answering.song_called(song.title, song.artist))) == ["so-107"]


# --- paths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 6])
def test_path_starts_and_ends_with_given_songs(library, n):
    answering = Answering(library, PlayerRules())
    path = answering.path(answering.song("3"), answering.song("20"), n)
    assert (ids(path)[0], ids(path)[-1], len(path)) == ("3", "20", max(n, 2))
    assert len(set(ids(path))) == len(path)
    assert path[0].similarity == 1.0
    now = take_snapshot(library)
    assert [m.similarity for m in path[1:]] == [similarity_of(now, 3, m.song.id) for m in path[1:]]
    assert ids(answering.path(answering.song("3"), answering.song("20"), n)) == ids(path)
    steps = [1 - similarity_of(now, a.song.id, b.song.id) for a, b in pairwise(path)]
    assert length_of(now, path) == pytest.approx(sum(steps))


def test_path_to_same_song_is_that_song(library):
    answering = Answering(library, PlayerRules())
    assert ids(answering.path(answering.song("3"), answering.song("3"), 9)) == ["3"]


def test_path_joins_duplicates_but_not_two_servers(library):
    library.duplicates.enter([SamePair(3, 4, 1.0, 0.0)], ())
    answering = Answering(library, PlayerRules())
    assert ids(answering.path(answering.song("3"), answering.song("4"), 9)) == ["3", "4"]
    connect_songs(library, "home", {3: "a"})
    connect_songs(library, "work", {20: "b"})
    with pytest.raises(NotFoundError):
        answering.path(answering.song("a"), answering.song("b"), 9)


def test_path_uses_songs_of_server(library):
    there = connect(library, without=range(5, 19))
    answering = Answering(library, PlayerRules())
    path = answering.path(answering.song("so-103"), answering.song("120"), 8)
    assert (ids(path)[0], ids(path)[-1], len(path)) == ("so-103", "so-120", 8)
    assert set(ids(path)) <= set(there.values())


def test_duplicate_can_end_path(library):
    library.duplicates.enter([SamePair(3, 4, 1.0, 0.0), SamePair(20, 21, 1.0, 0.0)], ())
    shown = take_snapshot(library).representative_of
    assert shown
    copies = sorted(shown)
    there = connect(library, without=set(shown.values()))
    answering = Answering(library, PlayerRules())
    first, last = (there[copy] for copy in copies)
    path = answering.path(answering.song(first), answering.song(last), 5)
    assert (ids(path)[0], ids(path)[-1]) == (first, last)
    everything = answering.similar(answering.song(there[1]), 500, is_limited=False)
    assert {first, last} <= set(ids(everything)), "a song that is shown is answered by the copy that the server has"


# --- artists ----------------------------------------------------------------------------------


def test_similar_artists_match_nearest_songs(library):
    now = take_snapshot(library)
    found = find_similar_artists(now, 1, 5)
    own = library.song(1).artist
    others = [hit for hit in find_similar(now, 1, 30, max_per_artist=None) if hit.song.artist != own]
    names = list(dict.fromkeys(hit.song.artist for hit in others))
    assert list(found) == names[:5]
    for name, hits in found.items():
        theirs = [hit.song.id for hit in others if hit.song.artist == name]
        entries = [hit.song.id for hit in hits]
        assert entries == theirs[: len(entries)]
        assert 1 <= len(entries) <= N_ENTRIES


def test_artist_query_excludes_itself(library):
    now = take_snapshot(library)
    standing = choose_songs_of(now, "ARTIST 0")
    assert {library.song(i).artist for i in standing.like} == {"Artist 0"}
    found = find_similar_artists(now, standing, 14)
    assert len(found.keys() - {"Artist 0"}) == len(found) == 14
    genres = [library.song(hits[0].song.id).genre for hits in list(found.values())[:4]]
    assert genres == [library.song(standing.like[0]).genre] * 4
    with pytest.raises(NotFoundError, match="no song by 'Artist 99'"):
        choose_songs_of(now, "Artist 99")


def test_artists_missing_on_server_are_left_out(library):
    gone = {song.id for song in library.songs() if song.artist == "Artist 3"}
    connect(library, without=gone)
    answering = Answering(library, PlayerRules())
    names = {artist.name for artist in answering.artists(answering.artist("Artist 0"), 14)}
    assert "Artist 3" not in names
    assert len(names) == 13


class _Server(BaseHTTPRequestHandler):
    """A music server that knows one artist."""

    def do_GET(self):
        call = urlsplit(self.path)
        is_known = parse_qs(call.query)["id"] == ["ar-3"] and call.path == "/rest/getArtist.view"
        found = {"status": "ok", "artist": {"id": "ar-3", "name": "Artist 3"}}
        refused = {"status": "failed", "error": {"code": 70, "message": "not found"}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"subsonic-response": found if is_known else refused}).encode())

    def log_message(self, *_):
        pass


@pytest.mark.long
def test_artist_is_found_by_name_or_server_id(library):
    there = connect(library)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        connect_server(library, "home", address)
        answering = Answering(library, PlayerRules())
        by_id, by_name = answering.artist("ar-3"), answering.artist("artist 3")
        assert by_id == by_name
        assert {there[i] for i in by_id.query.like} == set(ids(answering.songs_of(by_id)))
        assert answering.song_or_artist("so-107").query == 7
        mix = answering.similar(answering.song_or_artist("ar-3"), 10)
        assert len(mix) == 10
        assert "Artist 3" not in {match.song.artist for match in mix}
        for unknown in ("ar-4", "", "x" * 5000):
            with pytest.raises(NotFoundError):
                answering.artist(unknown)
        server.shutdown()


# --- the filter -------------------------------------------------------------------------------


def test_folder_filter_excludes_subfolders(library):
    now = take_snapshot(library)
    songs = now.songs_at()
    one = Path(songs[0].folder)
    for left_out in (one, one.parent, one.parent / "Artist"):
        mask = filter_rows(now, Filters(no_folders={str(left_out)}))
        below = [Path(song.folder) == left_out or left_out in Path(song.folder).parents for song in songs]
        np.testing.assert_array_equal(mask, ~np.array(below))
