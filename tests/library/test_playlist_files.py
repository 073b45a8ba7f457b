"""Tests of playlists of other programs: read in each form, otherwise refused, and matched by path and name."""

import codecs
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsim.errors import LibraryError
from musicsim.library.db import schema
from musicsim.library.importing import Matcher, NamedSong, commit_import, import_files, preview_import, read_listening
from musicsim.library.importing.places import PlaceIndex, resolve_place
from musicsim.library.media.playlist_files import PLAYLIST_FORMATS, location
from tests.library.fixtures import FIXTURES, needs_fixtures, skipped
from tests.library.listening import add_songs, write_json

MBID = "c7d0bf6e-b2aa-4ffa-bded-2448415b39b0"


def lists(batch):
    """Return the names of a batch's playlists, with the songs of each in order."""
    found = {group: [] for group in batch.groups}
    for group, song in zip(batch.group.tolist(), batch.song.tolist(), strict=True):
        found[batch.groups[group]].append(batch.songs[song])
    return {name: songs for (name, _), songs in found.items()}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def move(library, song_id, path):
    """Change the path of a song's file."""
    with library.write() as connection:
        files = schema.files
        connection.execute(files.update().where(files.c.song_id == song_id).values(path=Path(path)))


def at(library, *paths):
    """Add songs with files at these paths, titled Song 0, Song 1, ..."""
    ids = add_songs(library, *((f"Artist {i}", f"Song {i}") for i in range(len(paths))))
    for song_id, path in zip(ids, paths, strict=True):
        move(library, song_id, path)
    return ids


def found(library, place, artist="", title=""):
    match = Matcher(library).find(NamedSong(artist, title, place=str(place)))
    return (match.song_id, match.how) if match else None


# --- playlist formats ---------------------------------------------------------------------------

M3U = (
    "#EXTM3U\r\n#PLAYLIST: My  list\r\n# a comment\r\n\r\n#EXTINF:111, Ann - One - Live\r\n../music/one.mp3\r\n"
    '#EXTINF:-1 group="a, b",Radio\r\nhttp://example.org/radio\r\n'
    "#EXTART:Bob\r\n#EXTALB:Album\r\n#EXTINF:3,Two\r\nC:\\Music\\two.mp3\r\n../music/one.mp3\r\n"
)


def m3u_songs(folder):
    one = str(folder.parent / "music/one.mp3")
    return [
        NamedSong("Ann", "One - Live", place=one),
        NamedSong("", "Radio", place="http://example.org/radio"),
        NamedSong("Bob", "Two", "Album", place="C:\\Music\\two.mp3"),
        NamedSong("", "", place=one),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", ["m3u", "m3u8", "txt"])
def test_reads_m3u_with_all_directives(tmp_path, encoding, ending):
    path = write(tmp_path / f"lists/x.{ending}", M3U.encode(encoding))
    batch = read_listening([path])
    assert lists(batch) == {"My list": m3u_songs(path.parent)}
    assert (batch.kind, batch.format, batch.value.tolist()) == ("playlists", "m3u", [1, 2, 3, 4])


def test_m3u_without_title_is_named_after_file(tmp_path):
    path = write(tmp_path / "Road trip.m3u", "one.mp3\nsub/two.mp3\n/a/three.mp3\n")
    places = [song.place for song in lists(read_listening([path]))["Road trip"]]
    assert places == [str(tmp_path / "one.mp3"), str(tmp_path / "sub/two.mp3"), "/a/three.mp3"]


def test_m3u_content_is_recognized_in_any_file(tmp_path):
    for text in (
        "# mine\n#EXTINF:3,Ann - One\none\n",
        "#PLAYLIST:mine\none\n",
        "# mine\n/a/one.mp3\n\nC:\\b\\two.FLAC\nhttp://example.org/three.ogg?a=b\n",
    ):
        for fmt in (None, "m3u"):
            batch = read_listening([write(tmp_path / "list.txt", text)], fmt)
            assert (batch.format, batch.n_rows) == ("m3u", sum(line[:1] not in "#" for line in text.split("\n")))
    for text in ("one.mp3\ntwo\n", "one\n", "#EXTEND\none\n", "http://example.org/?file=one.mp3\n"):
        with pytest.raises(LibraryError, match="is not in m3u format"):
            read_listening([write(tmp_path / "list.txt", text)], "m3u")


@pytest.mark.parametrize("name", ["x.m3u", "x.pls", "x.xspf"])
def test_files_in_playlist_are_never_opened(tmp_path, name):
    (tmp_path / "secret.m3u").write_text("#EXTM3U\n#EXTINF:1,Hidden - Song\nhidden.mp3\n")
    os.mkfifo(tmp_path / "pipe.mp3")  # opening it would block forever
    inside = {
        "x.m3u": "secret.m3u\npipe.mp3\n",
        "x.pls": "[playlist]\nFile1=secret.m3u\nFile2=pipe.mp3\n",
        "x.xspf": xspf("<track><location>secret.m3u</location></track><track><location>pipe.mp3</location></track>"),
    }
    batch = read_listening([write(tmp_path / name, inside[name])])
    places = [str(tmp_path / place) for place in ("secret.m3u", "pipe.mp3")]
    assert [batch.songs[row] for row in batch.song] == [NamedSong("", "", place=place) for place in places]


@pytest.mark.parametrize("fmt", [None, "named"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.m3u", "#EXTM3U\n"),
        ("x.pls", "[playlist]\nNumberOfEntries=0\n"),
        ("x.xspf", "<playlist><trackList/></playlist>"),
        ("x.jspf", '{"playlist": {"title": "a", "track": []}}'),
    ],
)
def test_empty_playlist_is_refused(store, tmp_path, name, content, fmt):
    path = write(tmp_path / name, content)
    with pytest.raises(LibraryError, match=f"{name}: the playlist contains no songs"):
        import_files(store, path, fmt and path.suffix[1:])
    assert store.listening.imports() == []


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_m3u_in_common_encodings_finds_file(store, tmp_path, encoding):
    (song,) = at(store, tmp_path / "Ärzte/Geräusch.mp3")
    path = write(tmp_path / "x.m3u", "#EXTM3U\n#EXTINF:1,Ärzte - Nein\nÄrzte/Geräusch.mp3\n".encode(encoding))
    seen = preview_import(store, read_listening([path]))
    assert (seen.song_ids.tolist(), seen.songs_by) == ([song], {"path": 1})
    assert seen.batch.songs[0][:2] == ("Ärzte", "Nein")


PLS = (
    "[Playlist]\nX-GNOME-Title=My list\nFile10=b.mp3\nTitle10=Bob - Two\nFile2=a.mp3\ntitle2=One\nTitle3=No file\n"
    "Length2=3\nNumberOfEntries=2\nVersion=2\n"
)


def test_pls_is_ordered_by_numbers(tmp_path):
    batch = read_listening([write(tmp_path / "x.dat", PLS)])
    assert lists(batch) == {
        "My list": [
            NamedSong("", "One", place=str(tmp_path / "a.mp3")),
            NamedSong("Bob", "Two", place=str(tmp_path / "b.mp3")),
        ]
    }
    assert batch.format == "pls"


TRACK = (
    "<track><location>http://example.org/1</location><location>{place}</location>"
    f"<identifier>https://musicbrainz.org/recording/{MBID.upper()}</identifier>"
    "<title>One &amp; Two</title><creator>Ann</creator><album>Album</album>"
    "<extension application='x'><title>no title</title></extension></track>"
)
XSPF = "<?xml version='1.0'{said}?>\n<{x}playlist version='1'{ns}><{x}title>My list</{x}title>{tracks}</{x}playlist>"


def xspf(tracks, said="", ns=" xmlns='http://xspf.org/ns/0/'", prefix=""):
    inside = f"<trackList>{tracks}</trackList>"
    if prefix:
        inside = inside.replace("</", "</" + prefix).replace("<", "<" + prefix).replace(f"<{prefix}/", "</")
        inside = inside.replace(f"</{prefix}{prefix}", f"</{prefix}")
    return XSPF.format(said=said, ns=ns, x=prefix, tracks=inside)


@pytest.mark.parametrize(
    ("place", "leads"),
    [
        ("file:///music/a%20b%23.mp3", "/music/a b#.mp3"),
        ("file://localhost/music/a.mp3", "/music/a.mp3"),
        ("file:/music/a.mp3", "/music/a.mp3"),
        ("FILE:///C:/Music/a%20b.mp3", "C:/Music/a b.mp3"),
        ("file:///C|/Music/a.mp3", "C:/Music/a.mp3"),
        ("file://server/share/a.mp3", "//server/share/a.mp3"),
        ("/music/Funk &amp; Disco/a.mp3", "/music/Funk & Disco/a.mp3"),
        ("/music/a%20b.mp3", "/music/a b.mp3"),
        ("/music/100%.mp3", "/music/100%.mp3"),
        ("file:///music/caf%E9.mp3", os.fsdecode(b"/music/caf\xe9.mp3")),
    ],
)
def test_xspf_and_jspf_are_equivalent(tmp_path, place, leads):
    song = NamedSong("Ann", "One & Two", "Album", MBID, leads)
    path = write(tmp_path / "x.xspf", xspf(TRACK.format(place=place) * 2))
    assert lists(read_listening([path])) == {"My list": [song, song]}
    track = {
        "location": ["http://example.org/1", place.replace("&amp;", "&")],
        "identifier": f"https://musicbrainz.org/recording/{MBID}",
        **{"creator": "Ann", "title": "One & Two", "album": "Album"},
    }
    document = {"playlist": {"track": [track, track], "title": "My list"}}
    assert lists(read_listening([write_json(tmp_path / "x.json", document)])) == {"My list": [song, song]}


def test_reads_nonconforming_xspf(tmp_path):
    relative = TRACK.format(place="sub%20dir/a.mp3")
    for name, text in {
        "no name space": xspf(relative, ns=""),
        "prefix": xspf(relative, ns=" xmlns:x='http://xspf.org/ns/0/'", prefix="x:"),
        "latin-1": xspf(relative, said=" encoding='iso-8859-1'").replace("My list", "My lïst").encode("latin-1"),
        "utf-16": xspf(relative, said=" encoding='utf-16'").encode("utf-16"),
    }.items():
        (songs,) = lists(read_listening([write(tmp_path / f"{name}.xspf", text)])).values()
        assert [song.place for song in songs] == [str(tmp_path / "sub dir/a.mp3")], name
        assert (songs[0].title, songs[0].mbid) == ("One & Two", MBID), name


def test_reads_spotify_account_playlists(tmp_path):
    def item(artist, title):
        track = {"trackName": title, "artistName": artist, "albumName": "Album", "trackUri": "spotify:track:1"}
        return {"track": track, "episode": None, "localTrack": None, "addedDate": "2024-01-31"}

    local = {"track": None, "episode": None, "localTrack": {"uri": "spotify:local:A+b:C:D%C3%A9:180"}}
    episode = {"track": None, "episode": {"episodeName": "Talk"}, "localTrack": None}
    document = {
        "playlists": [
            {"name": "Calm", "lastModifiedDate": "2024-01-31", "items": [item("Ann", "One"), item("Bob", "Two")]},
            {"name": "Calm", "items": [item("Bob", "Two"), local, episode, item("Bob", "Two")]},
            {"name": "Empty", "items": []},
        ]
    }
    batch = read_listening([write_json(tmp_path / "Playlist1.json", document)])
    one, two = NamedSong("Ann", "One", "Album"), NamedSong("Bob", "Two", "Album")
    assert lists(batch) == {"Calm": [one, two], "Calm (2)": [two, NamedSong("A b", "Dé", "C"), two]}
    assert skipped(batch) == {"episode or audiobook": 1, "list without songs": 1}
    assert batch.format == "spotify_playlists"


def test_reads_long_spotify_playlist(tmp_path):
    items = [{"track": {"artistName": "A" * 300, "trackName": str(i)}} for i in range(10_000)]
    path = write_json(tmp_path / "Playlist1.json", {"playlists": [{"name": "All", "items": items}]})
    assert path.stat().st_size > 3 << 20
    assert read_listening([path]).n_rows == 10_000


@pytest.mark.parametrize("as_lines", [False, True])
def test_aotm_keeps_category_of_each_playlist(tmp_path, as_lines):
    mixes = [
        {
            **{"category": "Road Trip", "mix_id": 17, "timestamp": "2005-01-31", "user": {"name": "x"}},
            "playlist": [[["Ann", "One"], ["SOA", "TRA"]], [["Bob", "Two"], None], [["Ann", "One"], None]],
        },
        {"category": "Sleep", "mix_id": 18, "playlist": [["Bob", "Two"], {"artist": "Ann", "title": "One"}]},
    ]
    path = tmp_path / "aotm2011_playlists.json"
    path.write_text("\n".join(map(json.dumps, mixes)) if as_lines else json.dumps(mixes))
    batch = read_listening([path])
    one, two = NamedSong("Ann", "One"), NamedSong("Bob", "Two")
    assert lists(batch) == {"AotM 17": [one, two, one], "AotM 18": [two, one]}
    assert [category for _, category in batch.groups] == ["Road Trip", "Sleep"]
    assert batch.format == "aotm"


# --- several at once ------------------------------------------------------------------------------


def test_reads_all_playlists_of_folder_or_zip(tmp_path):
    folder = tmp_path / "lists"
    for name in ("a/mix.m3u", "b/mix.m3u", ".hidden/no.m3u"):
        write(folder / name, "one.mp3\n")
    write(folder / "c.pls", PLS)
    write(folder / "notes.txt", "nothing")
    write(folder / "stream.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\na.ts\n")
    batch = read_listening([folder])
    assert sorted(lists(batch)) == ["My list", "mix", "mix (2)"]
    assert (skipped(batch), batch.name) == ({"file in an unknown format": 2}, "lists")
    archive = tmp_path / "lists.zip"
    with zipfile.ZipFile(archive, "w") as stream:
        for path in folder.rglob("*.*"):
            if path.is_file() and ".hidden" not in path.parts:
                stream.write(path, path.relative_to(folder))
    packed = read_listening([archive])
    assert {name: len(songs) for name, songs in lists(packed).items()} == {"My list": 2, "mix": 1, "mix (2)": 1}
    assert lists(packed)["mix"] == [NamedSong("", "", place="one.mp3")], "there is no folder to lead it to"


def test_playlists_next_to_plays_in_zip_are_skipped(tmp_path):
    play = {"ts": "2024-01-31T10:11:00Z", "ms_played": 40_000, "master_metadata_track_name": "One"}
    play["master_metadata_album_artist_name"] = "Ann"
    account = {"playlists": [{"name": "Calm", "items": [{"track": {"artistName": "Ann", "trackName": "One"}}]}]}
    path = tmp_path / "my_spotify_data.zip"
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("Playlist1.json", json.dumps(account))
        stream.writestr("Streaming_History_Audio_2024.json", json.dumps([play]))
    batch = read_listening([path])
    assert (batch.kind, batch.n_rows) == ("plays", 1)
    assert skipped(batch) == {"Spotify playlists (JSON): choose this format to import it": 1}
    assert lists(read_listening([path], fmt="spotify_playlists")) == {"Calm": [NamedSong("Ann", "One")]}


# --- by path --------------------------------------------------------------------------------------


def test_path_is_found_in_every_spelling(store):
    song, latin = at(store, "/music/Ann/100% a#b.mp3", os.fsdecode(b"/music/caf\xe9.mp3"))
    for place in ("/music/Ann/100% a#b.mp3", "/music/x/../Ann/100% a#b.mp3", "/music/Ann/100%25%20a%23b.mp3",
                  "/music\\Ann\\100% a#b.mp3", " /music/Ann/100% a#b.mp3 "):  # fmt: skip
        assert found(store, place) == (song, "path"), place
    assert found(store, os.fsdecode(b"/music/caf\xe9.mp3")) == (latin, "path")


def test_paths_of_other_machine_match_by_end(store):
    ids = at(store, "/music/Ann/A/01 One.mp3", "/music/Ann/B/01 One.mp3", "/music/Ärzte/C/02.mp3", "/music/x.mp3")
    for place, song in {
        "C:\\Users\\me\\Ann\\A\\01 One.mp3": ids[0],
        "/Volumes/usb/ann/b/01 ONE.MP3": ids[1],
        "/mnt/A\u0308rzte/C/02.mp3": ids[2],
        "/other/x.mp3": ids[3],
        "x.mp3": ids[3],
    }.items():
        assert found(store, place) == (song, "path end"), place
    assert found(store, "/mnt/01 One.mp3") is None, "two songs end so"
    assert found(store, "/mnt/Other/A B/02.mp3") is None, "a number says nothing"
    assert found(store, "http://example.org/Ann/A/01 One.mp3") is None, "an address is no path"


def test_names_confirm_or_reject_path_end_match(store):
    (song,) = at(store, "/music/Album/CD1/01 Intro.mp3")
    assert found(store, "/mnt/CD1/01 Intro.mp3") == (song, "path end")
    assert found(store, "/mnt/CD1/01 Intro.mp3", "Somebody", "Intro") is None
    assert found(store, "/mnt/Ann/Album/CD1/01 Intro.mp3", "Somebody", "Intro") is None, "two parts speak, three must"
    assert found(store, "/mnt/CD1/01 Intro.mp3", "artist 0", "SONG 0") == (song, "path end")


def test_file_name_as_title_is_that_of_a_song_without_one(store):
    (song,) = add_songs(store, ("Ann", "farm_f"))
    move(store, song, "/music/Game/farm_f.ogg")
    assert found(store, "/mnt/Game/farm_f.ogg", "Ann", "farm_f.ogg") == (song, "path end")
    assert found(store, "", "Ann", "farm_f.OGG") == (song, "loose")
    assert found(store, "", "Ann", "farm_f.5") is None


def test_path_precedes_id_and_names(store):
    by_path, by_name = at(store, "/music/one.mp3", "/music/two.mp3")
    with store.write() as connection:
        connection.execute(schema.songs.update().where(schema.songs.c.id == by_name).values(mb_recording_id=MBID))
    matcher = Matcher(store)
    both = NamedSong("Artist 1", "Song 1", "", MBID, "/music/one.mp3")
    assert matcher.find(both).song_id == by_path
    assert matcher.find(both._replace(place="/mnt/none.mp3")).how == "mbid"
    assert matcher.find(both._replace(place="http://x.org/1", mbid="")).how == "exact"


def test_present_file_precedes_missing_file(store):
    ids = add_songs(store, ("A", "One", {"is_missing": True}), ("B", "Two"))
    move(store, ids[0], "/old/Ann/one.mp3")
    assert found(store, "/old/Ann/one.mp3") == (ids[0], "path")
    move(store, ids[1], "/new/Ann/one.mp3")
    assert found(store, "/mnt/Ann/one.mp3") == (ids[1], "path end")


PART = st.text("ab1 ä", min_size=1, max_size=2)


@given(
    st.lists(st.lists(PART, min_size=1, max_size=3), min_size=1, max_size=12), st.lists(PART, min_size=1, max_size=3)
)
def test_path_end_match_equals_brute_force(paths, asked):
    def parts(path):
        return [part.strip() for part in path if part.strip()]

    def common(one, other):
        pairs = zip(reversed(one), reversed(other), strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))

    index = PlaceIndex((Path("/" + "/".join(path)), i, True) for i, path in enumerate(paths))
    ends = {"/" + "/".join(path): common(parts(asked), parts(path)) for path in reversed(paths)}
    songs = {str(Path("/" + "/".join(path))): i for i, path in reversed(list(enumerate(paths)))}
    best = {songs[str(Path(path))] for path, n in ends.items() if n == max(ends.values()) > 0}
    got = index.find_by_end("/mnt//" + "/".join(asked))
    assert (got.song_id if got else None) == (best.pop() if len(best) == 1 else None)


# --- results --------------------------------------------------------------------------


def test_unmatched_entries_are_reported_per_playlist(store, tmp_path):
    one, two = at(store, tmp_path / "music/one.mp3", tmp_path / "music/two.mp3")
    first = write(
        tmp_path / "first.m3u",
        "#EXTM3U\nmusic/two.mp3\nmusic/gone.mp3\nmusic/one.mp3\n#EXTINF:1,Radio X\nhttp://x.org/r\nmusic/two.mp3\n",
    )
    second = write(
        tmp_path / "second.m3u", "#EXTM3U\n#EXTINF:1,Artist 0 - Song 0\n/none/zzz.mp3\n#EXTINF:1,No - One\ny\n"
    )
    seen = preview_import(store, read_listening([first, second]))
    assert [(x.name, x.n_entries, x.n_found) for x in seen.lists] == [("first", 5, 3), ("second", 2, 1)]
    gone = [[(a.position, a.label, a.reason) for a in x.absent] for x in seen.lists]
    assert gone == [
        [(2, "gone.mp3", "no such file"), (4, "Radio X", "web address")],
        [(2, "One — No", "not in the library")],
    ]
    assert seen.songs_by == {"path": 2, "exact": 1}
    assert {(w.artist, w.title) for w in seen.unmatched} == {("", "gone.mp3"), ("", "Radio X"), ("No", "One")}
    commit_import(store, seen)
    assert [(p.name, p.song_ids) for p in store.playlists()] == [("first", (two, one, two)), ("second", (one,))]
    assert len(store.listening.list_unmatched()) == 0, "lists do not wait"


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="/\0\n\r")
NAME = st.text(LETTERS | st.sampled_from("%#&?\"'<>; :\\"), min_size=1, max_size=12).filter(
    lambda s: s not in (".", "..")
)


@pytest.mark.parametrize("kind", list(PLAYLIST_FORMATS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(data=st.data())
def test_written_playlists_round_trip(tiny_library, tmp_path, kind, data):
    some = tiny_library.songs()
    names = data.draw(st.lists(NAME, min_size=1, max_size=5, unique=True))
    folder = tmp_path / data.draw(NAME)
    is_relative = data.draw(st.booleans())
    songs = [
        replace(song, path=folder / name, title=data.draw(TEXT), artist=data.draw(TEXT) or None)
        for name, song in zip(names, some, strict=False)
    ]
    songs += data.draw(st.lists(st.sampled_from(songs), max_size=2))
    path = tmp_path / f"list.{kind}"
    path.write_bytes(PLAYLIST_FORMATS[kind](data.draw(TEXT), songs, relative_to=tmp_path if is_relative else None))
    index = PlaceIndex((song.path, song.id, True) for song in songs)
    batch = read_listening([path])
    read = [batch.songs[row] for row in batch.song.tolist()]
    assert [index.find_whole(song.place) for song in read] == [song.id for song in songs]
    if kind in ("xspf", "jspf"):
        printable = ["".join(c for c in song.title if c >= " " or c in "\t\n\r") for song in songs]
        if kind == "xspf":
            assert [s.title for s in read] == [
                " ".join(t.replace("\ufffe", "").replace("\uffff", "").split()) for t in printable
            ]


# --- errors ------------------------------------------------------------------------------

LOL = (
    '<!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{i} "{f"&lol{i - 1 or str()};" * 10}">' for i in range(1, 10))
    + "]>"
)
EXTERNAL = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
DOCUMENT = "<playlist><trackList><track><title>{}</title></track></trackList></playlist>"
HOSTILE = {
    "laughs.xspf": (LOL + DOCUMENT.format("&lol9;"), "line 1 declares a document type"),
    "laughs16.xspf": ((LOL + DOCUMENT.format("&lol9;")).encode("utf-16"), "line 1 declares a document type"),
    "outside.xspf": (EXTERNAL + DOCUMENT.format("&f;"), "line 1 declares a document type"),
    "entity.xspf": (DOCUMENT.format("&f;"), "line 1 is not XML \\(undefined entity\\)"),
    "cut.xspf": (xspf(TRACK)[:300], "the file is cut off"),
    "other.xspf": ("<html></html>", "does not begin with <playlist>"),
    "deep.xspf": ("<playlist>" * 1000, "nested too deeply"),
    "long.xspf": (DOCUMENT.format("a" * 2_000_000), "text longer than"),
    "nul.xspf": (DOCUMENT.format("\0"), "line 1 is not XML"),
    "code.xspf": ("<?xml version='1.0' encoding='nonsense'?>" + DOCUMENT, "line 1 .*encoding"),
    "nul.m3u": ("#EXTM3U\na\0b.mp3\n", "line 2 contains a NUL byte"),
    "nul.pls": ("[playlist]\nFile1=a\0b.mp3\n", "line 2 contains a NUL byte"),
    "long.m3u": ("#EXTM3U\n" + "a" * 2_000_000, "line 2 is longer than"),
    "stream.m3u8": ("#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:9,\na.ts\n", r"segmented stream \(HLS\)"),
    "empty.m3u": ("", "the file is empty"),
    "cut.jspf": ('{"playlist": {"track": [{"title": "a"}, {"ti', "cut off"),
    "wrong.jspf": ('{"playlist": {"track": [{"title": "a", "location": 3}]}}', "has location '3'"),
    "none.jspf": ('{"playlist": {"title": "a"}}', "no list of records"),
    "deep.jspf": ('{"playlist": {"track": [' + "[" * 200_000, "nested too deeply"),
    "items.json": ('{"playlists": [{"name": "a", "items": [3]}]}', "items that are not a list of records"),
    "mix.json": ('[{"mix_id": 1, "playlist": [[3]]}]', "instead of artist and title"),
    "media.wpl": ("<?wpl?><smil/>", r"a Windows Media playlist \(\.wpl\) cannot be read"),
    "sheet.cue": ('FILE "a.wav" WAVE\n', r"a cue sheet \(\.cue\) cannot be read"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_invalid_or_harmful_file_error_names_line(tmp_path, name):
    content, message = HOSTILE[name]
    path = write(tmp_path / name, content)
    with pytest.raises(LibraryError, match=message) as refused:
        read_listening([path])
    assert str(path) in str(refused.value)
    assert len(str(refused.value)) < 500 + len(str(path)), "one sentence, not the file"


def test_hls_named_m3u_is_refused(tmp_path):
    path = write(tmp_path / "x.m3u8", HOSTILE["stream.m3u8"][0])
    with pytest.raises(LibraryError, match="belongs to a segmented stream"):
        read_listening([path], fmt="m3u")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["m3u8", "pls", "xspf", "jspf"])
def test_long_playlists_use_bounded_memory(tmp_path, kind):
    import tracemalloc

    n = 20_000
    write_line = {
        "m3u8": lambda i: f"/music/{i}.mp3\n",
        "pls": lambda i: f"File{i + 1}=/music/{i}.mp3\n",
        "xspf": lambda i: f"<track><location>/music/{i}.mp3</location></track>\n",
        "jspf": lambda i: f'{{"location":["/music/{i}.mp3"]}}{"," if i < n - 1 else ""}\n',
    }[kind]
    start, end = {
        "m3u8": ("#EXTM3U\n", ""),
        "pls": ("[playlist]\n", ""),
        "xspf": ("<playlist><trackList>", "</trackList></playlist>"),
        "jspf": ('{"playlist":{"track":[', "]}}"),
    }[kind]
    path = tmp_path / f"long.{kind}"
    with path.open("w") as stream:
        stream.write(start)
        stream.writelines(map(write_line, range(n)))
        stream.write(end)
    tracemalloc.start()
    batch = read_listening([path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (batch.n_rows, batch.songs[-1].place) == (n, f"/music/{n - 1}.mp3")
    assert peak < n * 700 + 4_000_000  # documented size of an entry, plus the text for the digest


def test_same_playlist_twice_is_one_import(store, tmp_path):
    at(store, tmp_path / "one.mp3")
    path = write(tmp_path / "x.m3u", codecs.BOM_UTF8 + b"one.mp3\n")
    for _ in range(2):
        commit_import(store, preview_import(store, read_listening([path])))
    assert (len(store.listening.imports()), len(store.playlists())) == (1, 1)


def test_addresses_and_absolute_paths_are_unchanged(tmp_path):
    for place in ("http://x.org/a.mp3", "spotify:track:1", "mms://x", "/a/b.mp3", "D:\\a.mp3", "\\\\server\\a.mp3", ""):
        assert resolve_place(place, tmp_path) == place
    assert resolve_place("Ann: Live.mp3", tmp_path) == str(tmp_path / "Ann: Live.mp3")


# --- files from other programs ----------------------------------------------------------------------

SAMPLE = NamedSong("Sample artist name", "Sample track title", place="C:\\Music\\SampleMusic.mp3")
# file: format, number of entries, one entry, its expected content
REAL = {
    "lizzy/m3u/playlist-iso-8859-1.m3u": ("m3u", 2, 0, SAMPLE),
    "lizzy/m3u/playlist-utf16be-bom.m3u": ("m3u", 2, 0, SAMPLE),
    "lizzy/m3u/playlist-utf16le-bom.m3u": ("m3u", 2, 0, SAMPLE),
    "lizzy/m3u/playlist-utf8-bom.m3u": ("m3u", 2, 0, SAMPLE),
    "lizzy/m3u/playlist-utf8.m3u8": ("m3u", 2, 0, SAMPLE),
    "lizzy/m3u/test01.m3u": ("m3u", 3, 1, NamedSong("", "", place="{here}/foo/fighters.mp3")),
    "lizzy/m3u/test01.m3u8": ("m3u", 3, 0, NamedSong("", "", place="{here}/rock.mp3")),
    "lizzy/m3u/test02.m3u": ("m3u", 6, 3, NamedSong("", "", place="F:\\more music\\foo_bar.mp3")),
    "lizzy/m3u/test03.m3u": ("m3u", 5, 4, NamedSong("", "My Cool Stream", place="http://www.site.com:8000/listen.pls")),
    "lizzy/m3u/test04.m3u": (
        "m3u",
        5,
        1,
        NamedSong(
            "Apoptygma Berzerk",
            "Kathy«s song (VNV Nation rmx)",
            place="{here}/mp3/Apoptygma Berzerk/Apoptygma Berzerk - Kathy's Song (Victoria Mix by VNV Nation).mp3",
        ),
    ),
    "lizzy/m3u/test05.m3u": (
        "m3u",
        2,
        1,
        NamedSong("", "Example title", place="C:\\Documents and Settings\\I\\My Music\\Greatest Hits\\Example.ogg"),
    ),
    "lizzy/m3u/test06.m3u": ("m3u", 4, 0, NamedSong("", "", place="/music/opeth/white cluster.mp3")),
    "lizzy/pls/playlist.pls": (
        "pls",
        5,
        0,
        NamedSong("Everclear", "So Much For The Afterglow", place="{here}/Alternative\\everclear - SMFTA.mp3"),
    ),
    "lizzy/pls/test02.pls": (
        "pls",
        1,
        0,
        NamedSong("", "Bird Song", place="http://www.panix.com/web/faq/multimedia/sample.mp3"),
    ),
    "lizzy/pls/test03.pls": ("pls", 3, 2, NamedSong("", "Local album", place="/home/myaccount/album.flac")),
    "lizzy/pls/test04.pls": ("pls", 1, 0, NamedSong("", "", place="http://itsreggae.com:8004/")),
    "lizzy/pls/test05.pls": ("pls", 3, 0, NamedSong("", "", place="/fs/My Music/Eloy/02 Journey into 1358.mp3")),
    "lizzy/xspf/test02.xspf": ("xspf", 3, 1, NamedSong("", "", place="http://example.net/song_2.flac")),
    "lizzy/jspf/playlist.jspf": ("jspf", 2, 1, NamedSong("Artist 2", "Track 2", place="http://example.com/track2")),
    "clementine/pls_one.pls": ("pls", 1, 0, NamedSong("", "Title", place="{here}/filename with spaces.mp3")),
    "clementine/pls_somafm.pls": (
        "pls",
        4,
        3,
        NamedSong(
            "",
            "SomaFM: Groove Salad (Firewall-friendly 128k mp3) A nicely chilled plate of ambient beats and grooves.",
            place="http://ice.somafm.com/groovesalad",
        ),
    ),
    "clementine/test.m3u": (
        "m3u",
        239,
        2,
        NamedSong(
            "",
            "なないろグラデーション",
            place="/home/kadai/Music/COLLECTION/2009/Various Artists/Let's TAP SOUNDTRACK/06.mp3",
        ),
    ),
    "clementine/test.xspf": ("xspf", 1, 0, NamedSong("Bar", "Foo", "Baz", place="http://example.com/foo.mp3")),
    "beets/playlist.m3u8": ("m3u", 2, 1, NamedSong("", "", place="/This/is/another/path/tö_a_file.mp3")),
    "beets/playlist_non_ext.m3u": ("m3u", 2, 0, NamedSong("", "", place="/This/is/a/path/to_a_file.mp3")),
    "beets/playlist_windows.m3u8": ("m3u", 2, 0, NamedSong("", "", place="x:\\This\\is\\å\\path\\to_a_file.mp3")),
    "mopidy/comment-ext.m3u": ("m3u", 1, 0, NamedSong("", "Song #1", place="{here}/song1.mp3")),
    "mopidy/comment.m3u": ("m3u", 1, 0, NamedSong("", "", place="{here}/song1.mp3")),
    "mopidy/encoding-ext.m3u": ("m3u", 1, 0, NamedSong("", "æøå", place="{here}/\udce6\udcf8\udce5.mp3")),
    "quodlibet/test.m3u8": ("m3u", 5, 2, NamedSong("Quod Libet", "110Hz test track", place="{here}/sine-110hz.flac")),
    "quodlibet/non-compliant.xspf": (
        "xspf",
        1,
        0,
        NamedSong(
            "Average White Band",
            "Your Love Is a Miracle",
            "Pickin' Up the Pieces: The Best of Average White Band (1974-1990)",
            place="/music/Funk & Disco/Average White Band - Pickin' Up The Pieces/"
            "Average White Band - Your Love Is a Miracle.flac",
        ),
    ),
}


@needs_fixtures
@pytest.mark.parametrize("name", REAL)
def test_reads_playlists_of_other_programs(name):
    fmt, n_entries, entry, song = REAL[name]
    path = FIXTURES / name
    batch = read_listening([path])
    assert (batch.kind, batch.format, batch.n_rows) == ("playlists", fmt, n_entries)
    expected = song._replace(place=song.place.replace("{here}", str(path.parent)))
    assert batch.songs[batch.song[entry]] == expected


REFUSED = {
    "globocom_m3u8/simple-playlist.m3u8": "segmented stream",
    "globocom_m3u8/relative-playlist.m3u8": "segmented stream",
    "mopidy/empty.m3u": "the file is empty",
    "mopidy/empty-ext.m3u": "contains no songs",
    "clementine/test.asx": "Windows Media",
    "clementine/onesong.cue": "a cue sheet",
    "lizzy/wpl/test01.wpl": "Windows Media",
    "lizzy/b4s/test01.b4s": "Winamp",
    "lizzy/plist/test01.plist": "iTunes",
    "lizzy/plist/iTunesMusicLibrary.xml": "iTunes",
    "lizzy/rmp/test01.rmp": "RealPlayer",
    "lizzy/mpcpl/test01.mpcpl": "Media Player Classic",
    "lizzy/pla/test01.pla": "Samsung",
    "lizzy/plp/test01.plp": "Sansa",
}


@needs_fixtures
@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_playlists_are_refused_by_program(name):
    with pytest.raises(LibraryError, match=REFUSED[name]) as refused:
        read_listening([FIXTURES / name])
    assert str(FIXTURES / name) in str(refused.value)


def test_same_name_in_two_folders_gives_two_playlists(tiny_library, tmp_path):
    songs = tiny_library.songs()

    def bring(folder, chosen):
        (tmp_path / folder).mkdir(exist_ok=True)
        path = write(tmp_path / folder / "list.m3u", "\n".join(str(song.path) for song in chosen))
        return import_files(tiny_library, [path])

    bring("a", songs[:4])
    bring("b", songs[6:10])
    assert len(tiny_library.listening.imports()) == 2
    assert len(tiny_library.playlists()) == 2
    bring("a", songs[:5])  # edited since then
    assert len(tiny_library.listening.imports()) == 2
    assert sorted(len(p.song_ids) for p in tiny_library.playlists()) == [4, 5]


def test_undo_keeps_saved_playlists(tiny_library, tmp_path):
    songs = tiny_library.songs()
    tiny_library.add_playlists([("mine", None, [songs[0].id])], source="saved")
    (tmp_path / "saved").mkdir()
    write(tmp_path / "saved" / "other.m3u", "\n".join(str(song.path) for song in songs[:3]))
    report = import_files(tiny_library, [tmp_path / "saved"])
    tiny_library.listening.undo(report.import_id)
    assert [p.name for p in tiny_library.playlists()] == ["mine"]


def test_relative_path_with_leading_backslash_is_escaped(tmp_path):
    assert location(tmp_path / "\\" / "0", tmp_path) == "./%5C/0"
    assert location(tmp_path / "a" / "0", tmp_path) == "a/0"
