"""Tests of listening files: each format is read, and anything else is refused with its line."""

import json
import os
import zipfile

import numpy as np
import pytest

from musicsim.errors import LibraryError
from musicsim.library.importing import FORMATS, NamedSong, read_listening
from musicsim.progress import Canceled
from tests.library.fixtures import FIXTURES, needs_fixtures, skipped
from tests.library.listening import write_json, write_zip
from tests.progress import cancel_when


def summed(batch):
    """Return the counts of a batch by group and song."""
    return {
        (batch.groups[g][0], batch.songs[s].artist, batch.songs[s].title): v
        for g, s, v in zip(batch.group.tolist(), batch.song.tolist(), batch.value.tolist(), strict=True)
    }


# file: format, rows, distinct songs, skipped rows, first song
REAL = {
    "listenbrainz/listenbrainz_listens.jsonl": ("listenbrainz", 2, 2, 0, "The Stranglers", "Golden Brown"),
    "listenbrainz/listenbrainz_mixed_validity.jsonl": (
        "listenbrainz",
        3,
        3,
        2,
        "The Mamas & The Papas",
        "California Dreamin'",
    ),
    "listenbrainz/valid_import.json": ("listenbrainz", 2, 2, 0, "Kanye West", "Fade"),
    "listenbrainz/user_export_test.json": ("listenbrainz", 3, 2, 0, "Kanye West", "Fade"),
    "listenbrainz/timescale_listenstore_test_listens.json": (
        "listenbrainz",
        5,
        5,
        0,
        "Led Zeppelin",
        "Immigrant Song 0",
    ),
    "multi-scrobbler/submitListensRequestExample.json": ("listenbrainz", 1, 1, 0, "The Smashing Pumpkins", "17"),
    "listenbrainz/spotify_streaming_endsong_0.json": ("spotify", 4, 4, 1, "The Yardbirds", "Got To Hurry"),
    "listenbrainz/spotify_streaming_2023.json": (
        "spotify",
        4,
        4,
        1,
        "All Time Low",
        "Monsters (feat. Demi Lovato and blackbear)",
    ),
    "mixtapestudy/music_history_short.json": ("spotify", 3, 3, 0, "John Mayer", "Heartbreak Warfare"),
    "songprogress/HistorySample.json": ("spotify", 6, 5, 0, "Ken Ashcorp", "Absolute Territory"),
    "listenbrainz/librefm.csv": ("librefm", 3, 3, 0, "The Horrors", "New Ice Age"),
    "listenbrainz/librefm_no_album_column.csv": ("librefm", 2, 2, 0, "Rick Astley", "Never Gonna Give You Up"),
    "listenbrainz/librefm_via_maloja.csv": ("librefm", 3, 3, 0, "The Horrors", "New Ice Age"),
    "listenbrainz/librefm_with_comments.csv": ("librefm", 3, 3, 0, "The Horrors", "New Ice Age"),
    "listenbrainz/maloja.json": ("maloja", 2, 2, 0, "Alabaster Deplume", "Not Now, Jesus"),
    "listenbrainz/maloja_malformed.json": ("maloja", 0, 0, 3, None, None),
    "listenbrainz/listenbrainz_all_invalid.jsonl": ("listenbrainz", 0, 0, 3, None, None),
    "listenbrainz/panoscrobbler.jsonl": ("panoscrobbler", 2, 2, 0, "KiloWatts", "Scraped On The Way Out"),
    "listenbrainz/spinitron_sample.csv": ("spinitron", 3, 3, 2, "Microdisney", "People Just Want To Dream"),
    "listenbrainz/lastfm_loved_tracks_1.json": ("loved", 5, 5, 0, "Ariana Grande", "Let Me Love You"),
    "listenbrainz/librefm_loved_tracks_1.json": ("loved", 3, 3, 0, "Death Souljah", "Die Yung"),
}


@needs_fixtures
@pytest.mark.parametrize("name", REAL)
def test_reads_real_exports(name):
    fmt, n_rows, n_songs, n_skipped, artist, title = REAL[name]
    batch = read_listening([FIXTURES / name])
    assert (batch.format, batch.n_rows, len(batch.songs)) == (fmt, n_rows, n_songs)
    assert sum(entry.count for entry in batch.skipped) == n_skipped
    if artist:
        assert (batch.songs[0].artist, batch.songs[0].title) == (artist, title)
    again = read_listening([FIXTURES / name], fmt=fmt)
    assert again.digest == batch.digest, "named or recognised, it is the same file"


@needs_fixtures
@pytest.mark.parametrize(
    "name",
    [
        "listenbrainz/librefm_no_header.csv",
        "listenbrainz/spotify_recently_played_submitted.json",
        "multi-scrobbler/withDuration.json",
        "lizzy/playlists.json",
    ],
)
def test_other_files_are_refused_by_name(name):
    with pytest.raises(LibraryError, match=f"{name.split('/')[-1]}: line 1 is not in a known format"):
        read_listening([FIXTURES / name])


@needs_fixtures
def test_skipped_entry_is_reported_at_its_first_line():
    batch = read_listening([FIXTURES / "listenbrainz/maloja_malformed.json"])
    (entry,) = batch.skipped
    lines = (FIXTURES / "listenbrainz/maloja_malformed.json").read_text().splitlines()
    starts = [i for i, line in enumerate(lines, 1) if line == "    {"]
    assert entry.places == [f"maloja_malformed.json, line {line}" for line in starts]


def spotify(played=40_000, **more):
    return {
        "ts": "2024-01-31T10:11:00Z",
        "ms_played": played,
        "master_metadata_track_name": "Title",
        "master_metadata_album_artist_name": "Artist",
        "master_metadata_album_album_name": "Album",
    } | more


def test_spotify_import_excludes_skips_episodes_and_audiobooks(tmp_path):
    nameless = {"master_metadata_track_name": None, "master_metadata_album_artist_name": None}
    path = write_json(
        tmp_path / "Streaming_History_Audio_2024.json",
        [
            spotify(),
            spotify(30_000),
            spotify(29_999),
            spotify(**nameless, episode_name="Talk"),
            spotify(**nameless, audiobook_title="Book"),
            spotify(**nameless),
        ],
    )
    batch = read_listening([path], listener="ann")
    assert summed(batch) == {("ann", "Artist", "Title"): 2}
    assert skipped(batch) == {"skipped before 30 s": 1, "episode or audiobook": 2, "no artist or title": 1}
    assert batch.first_at == batch.last_at == 1706695860.0
    assert batch.songs[0].album == "Album"


LASTFM = (
    'Ärzte,Geräusch,"Nichts, was bleibt","31 Jan 2024 10:11"\nB,,C,\n'
    'Ärzte,Geräusch,"Nichts, was bleibt",01 Feb 2024 00:00\n'
)
LASTFM_HEADER = (
    "uts,utc_time,artist,artist_mbid,album,album_mbid,track,track_mbid\n"
    '"1706695860","31 Jan 2024, 10:11","Ärzte","","Geräusch","","Nichts, was bleibt",'
    '"c7d0bf6e-b2aa-4ffa-bded-2448415b39b0"\n'
    '"","","B","","","","C",""\n'
)


def test_reads_lastfm_with_and_without_header(tmp_path):
    path = tmp_path / "scrobbles.csv"
    path.write_text(LASTFM, encoding="utf-8")
    plain = read_listening([path])
    assert summed(plain) == {("me", "Ärzte", "Nichts, was bleibt"): 2}
    assert (plain.format, skipped(plain), plain.first_at) == ("lastfm", {"playing now": 1}, 1706695860.0)
    path.write_text(LASTFM_HEADER, encoding="utf-8")
    with_header = read_listening([path])
    assert (with_header.format, skipped(with_header)) == ("lastfm", {"playing now": 1})
    assert with_header.songs == (
        NamedSong("Ärzte", "Nichts, was bleibt", "Geräusch", "c7d0bf6e-b2aa-4ffa-bded-2448415b39b0"),
    )
    assert with_header.first_at == plain.first_at


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding_is_detected_by_byte_order_mark(tmp_path, encoding):
    path = tmp_path / "scrobbles.csv"
    path.write_text(LASTFM, encoding=encoding)
    assert read_listening([path]).songs[0].artist == "Ärzte"


def test_latin_1_is_read_only_on_request(tmp_path):
    path = tmp_path / "plays.csv"
    path.write_bytes(b"listener,artist,title,plays\nann,x,y,1\nann,caf\xe9,x,1\n")
    with pytest.raises(LibraryError, match="line 3 is not UTF-8"):
        read_listening([path])
    assert read_listening([path], encoding="latin-1").songs[1].artist == "café"
    with pytest.raises(ValueError, match="encoding='ebcdic'"):
        read_listening([path], encoding="ebcdic")


def test_triplets_get_names_from_track_list(tmp_path):
    triplets, tracks = tmp_path / "train_triplets.txt", tmp_path / "unique_tracks.txt"
    triplets.write_text("u1\tSOA\t3\nu2\tSOA\t1\nu1\tSOB\t2\n")
    tracks.write_text("TR1<SEP>SOA<SEP>Björk<SEP>Jóga\nTR2<SEP>SOA<SEP>Björk<SEP>Jóga\n")
    batch = read_listening([triplets, tracks])
    assert summed(batch) == {("u1", "Björk", "Jóga"): 3, ("u2", "Björk", "Jóga"): 1}
    assert (batch.format, sum(skipped(batch).values())) == ("triplets", 1)
    with pytest.raises(LibraryError, match="no plays"):
        read_listening([tracks])


@pytest.mark.parametrize("most_rows", [1 << 22, 100, 700])
def test_sums_match_row_by_row_counts(tmp_path, rng, monkeypatch, most_rows):
    monkeypatch.setattr("musicsim.library.importing.records.MAX_ROWS", most_rows)
    path, truth = tmp_path / "plays.csv", {}
    with path.open("w") as stream:
        stream.write("title,plays,artist,listener\n")
        for who, song, n in rng.integers(1, [5, 30, 9], size=(3000, 3)).tolist():
            stream.write(f"t{song},{n},a{song % 7},w{who}\n")
            key = (f"w{who}", f"a{song % 7}", f"t{song}")
            truth[key] = truth.get(key, 0) + n
    batch = read_listening([path])
    assert summed(batch) == truth
    assert (batch.n_rows, batch.value.sum()) == (3000, sum(truth.values()))


def test_zip_is_read_and_other_files_are_counted(tmp_path):
    path = write_zip(
        tmp_path / "my_spotify_data.zip",
        a__history0_json=json.dumps([spotify()]),
        a__history1_json=json.dumps([spotify(), spotify()]),
        a__Userdata_json='{"username": "x"}',
        a__picture="no text at all",
    )
    batch = read_listening([path])
    assert summed(batch) == {("me", "Artist", "Title"): 3}
    assert skipped(batch) == {"file in an unknown format": 1}


def test_several_files_form_one_import(tmp_path):
    first = write_json(tmp_path / "a.json", [spotify()])
    second = tmp_path / "b.csv"
    second.write_text('Artist,,Title,"31 Jan 2024 10:11"\n')
    batch = read_listening([first, second, first])
    assert (batch.n_rows, batch.format, batch.name) == (2, "lastfm + spotify", "a.json, b.csv")
    tags = tmp_path / "tags.csv"
    tags.write_text("artist,title,tag,weight\na,b,c,1\n")
    with pytest.raises(LibraryError, match="import them one after the other"):
        read_listening([first, tags])


def test_long_document_is_read_entry_by_entry(tmp_path):
    entries = [spotify(40_000 + i, reason_start="é" * (i % 700)) for i in range(3000)]
    for indent in (None, 2):
        path = write_json(tmp_path / "long.json", entries, indent=indent, ensure_ascii=False)
        assert read_listening([path]).n_rows == 3000
        text = path.read_text()
        path.write_text(text[: len(text) // 2])
        with pytest.raises(LibraryError, match=r"long\.json: line .*cut off"):
            read_listening([path])


# --- errors ------------------------------------------------------------------------------

HEADER = "listener,artist,title,plays\n"
LISTEN = '{"listened_at": 1, "track_metadata": {"artist_name": "a", "track_name": "b"}}\n'
HOSTILE = {
    "missing column": ("artist,title,plays\n", "line 1 has no column 'listener'"),
    "empty": ("", "the file is empty"),
    "spaces": (" \n\n", "the file is empty"),
    "word for number": (HEADER + "ann,a,b,many\n", "line 2: plays is 'many'"),
    "negative": (HEADER + "ann,a,b,-1\n", "line 2: plays is '-1'"),
    "no number": (HEADER + "ann,a,b,nan\n", "line 2: plays is 'nan'"),
    "fewer values": (HEADER + "ann,a,b,1\nann,x,y\n", "line 3 has 3 values"),
    "NUL": (HEADER + "ann,a,b\0,1\n", "line 2 contains a NUL byte"),
    "NULs": ("\0" * 100, "NUL bytes"),
    "open quote": (HEADER + 'ann,a,b,1\nann,"a,b,1\n', "line 3 is not CSV"),
    "quote inside": (HEADER + 'ann,"a"b,c,1\n', "line 2 is not CSV"),
    "long line": (HEADER + "ann," + "a" * 10_000_000 + ",b,1\n", "line 2 is longer than"),
    "long first line": ("a" * 10_000_000, "line 1 is not in a known format"),
    "cut JSONL": (LISTEN + LISTEN[:40], "line 2 is not JSON"),
    "cut list": (f"[{LISTEN},\n{LISTEN[:60]}", "line 3 is not JSON"),
    "cut after entry": (f"[{LISTEN}", "the file is cut off"),
    "no comma": (f"[{LISTEN}{LISTEN}]", "line 2 has '{' instead of ','"),
    "bytes behind": (f"[{LISTEN}] x", "line 2 has extra data after the end"),
    "bomb": ('{"payload": ' + "[" * 200_000 + '"track_metadata"', "not in a known format"),
    "bomb inside": (f"[{LISTEN}, " + "[" * 900_000, "line 2 is nested too deeply"),
    "bomb in a line": (LISTEN + "[" * 900_000, "line 2 is nested too deeply"),
    "long entry": (f'[{LISTEN}, {{"track_metadata": "' + "a" * 10_000_000, "line 2 is not JSON"),
    "wrong type": (LISTEN.replace('"a"', "17"), "line 1 has artist_name '17'"),
    "no object": (LISTEN + "17\n", "line 2 contains '17' instead of a record"),
    "time is none": (LISTEN.replace("1,", '"soon",', 1), "line 1 has listened_at 'soon'"),
    "long number": (LISTEN + LISTEN.replace("1,", "1" * 9999 + ","), "line 2 is not JSON"),
    "other object": (LISTEN + '{"a": 1}\n', "line 2 does not have track_metadata"),
    "no list": ('{"scrobbles": {"track": 3}}', "no list of records"),
    "date": ('a,b,c,"31 Jan 2024 10:11"\na,b,c,yesterday\n', "line 2: the date is 'yesterday'"),
    "triplets": ("u\ts\t1\nu\ts\n", "line 2 has 2 values between tabs"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_invalid_file_error_names_line(tmp_path, case):
    text, message = HOSTILE[case]
    path = tmp_path / "listening.dat"
    path.write_text(text)
    with pytest.raises(LibraryError, match=message) as refused:
        read_listening([path])
    assert str(path) in str(refused.value)
    assert len(str(refused.value)) < 500, "one sentence, not the file"


TOKEN = "SECRET-TOKEN-12345"
SECRETS = {
    "shadow": f"root:{TOKEN}:19000:0:99999:7:::\nann:/{TOKEN}:19000:0:99999:7:::\n",
    ".env": f"api_key = {TOKEN}\nPASSWORD='{TOKEN}'\n",
    ".netrc": f"machine example.org\nlogin ann\npassword {TOKEN}\n",
    "id_rsa": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{TOKEN}\n-----END OPENSSH PRIVATE KEY-----\n",
    "notes.txt": f"# my notes\nhttps://example.org/{TOKEN}\n{TOKEN}\n",
    ".history": f"mpv /music/one.mp3\n/music/two.mp3\ncurl -u ann:{TOKEN} example.org\n",
    "passwords.csv": f"name,url,username,password\nbank,example.org,ann,{TOKEN}\n",
    "keys.tsv": f"name\tkey\nann\t{TOKEN}\n",
    "tokens.json": json.dumps([TOKEN, TOKEN]),
    "config.json": json.dumps({"auths": {"example.org": {"auth": TOKEN}}, "track": [TOKEN], "playlists": [3]}),
    "records.jsonl": json.dumps({"user": "ann", "artist": 3, "password": TOKEN}) + "\n",
    "settings.xml": f"<settings><{TOKEN}>{TOKEN}</{TOKEN}></settings>",
    "my.ini": f"[client]\nFile1={TOKEN}\npassword={TOKEN}\n",
    "store.sqlite": f"SQLite format 3\0\x10\0{TOKEN}",
    "latin": f"pass\xe9 {TOKEN}\n",
}


@pytest.mark.parametrize("fmt", [None, *FORMATS])
@pytest.mark.parametrize("name", SECRETS)
def test_errors_do_not_reveal_file_content(tmp_path, name, fmt):
    path = tmp_path / name
    path.write_bytes(SECRETS[name].encode("latin-1"))
    with pytest.raises(LibraryError) as refused:
        read_listening([path], fmt)
    said = str(refused.value)
    assert said.startswith(f"{path}: ")
    assert TOKEN not in said
    assert "ann" not in said.removeprefix(str(path))


def test_given_format_skips_other_files(tmp_path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "notes.txt").write_text(SECRETS["notes.txt"])
    (tmp_path / "all" / "list.m3u").write_text("one.mp3\n")
    archive = write_zip(tmp_path / "all.zip", **{"notes.txt": SECRETS["notes.txt"], "list.m3u": "one.mp3\n"})
    for path in (tmp_path / "all", archive):
        batch = read_listening([path], "m3u")
        assert [name for name, _ in batch.groups] == ["list"]
        assert skipped(batch) == {"file in an unknown format": 1}


def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "list.m3u")
    for path in (tmp_path / "list.m3u", "/dev/zero"):
        with pytest.raises(LibraryError, match="is a device or a pipe"):
            read_listening([path], "m3u")


def test_harmful_archives_are_refused(tmp_path):
    path = write_zip(tmp_path / "bomb.zip", history_json="[" + " " * 30_000_000 + "]")
    with pytest.raises(LibraryError, match="would unpack to 28 MB"):
        read_listening([path])
    path = write_zip(tmp_path / "other.zip", picture="x")
    with pytest.raises(LibraryError, match=r"does not contain a \.json"):
        read_listening([path])
    path = write_zip(tmp_path / "damaged.zip", history_json=json.dumps([spotify(i) for i in range(40_000, 41_000)]))
    data = bytearray(path.read_bytes())
    data[200:260] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(LibraryError, match=r"damaged\.zip"):
        read_listening([path])


def test_invalid_characters_in_names_are_replaced(tmp_path):
    path = tmp_path / "listens.jsonl"
    path.write_text(LISTEN.replace('"a"', r'"a\ud800\u0000  b"'))
    name = read_listening([path]).songs[0].artist
    assert name.encode() == b"a? b"


def test_rejects_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="fmt='winamp'"):
        read_listening([tmp_path / "x"], fmt="winamp")
    with pytest.raises(ValueError, match="paths is empty"):
        read_listening([])
    with pytest.raises(LibraryError, match="cannot be read"):
        read_listening([tmp_path / "nowhere.csv"])
    with pytest.raises(LibraryError, match=r"the folder does not contain a \.json"):
        read_listening([tmp_path])
    assert "spotify" in FORMATS


def test_progress_counts_bytes_and_can_cancel(tmp_path):
    path = tmp_path / "plays.csv"
    path.write_text(HEADER + "ann,a,b,1\n" * 20_000)
    seen = []
    read_listening([path], progress=lambda message, done, total: seen.append((done, total, message)))
    done = np.array([step[0] for step in seen])
    assert (np.diff(done) >= 0).all()
    assert done[-1] <= path.stat().st_size == seen[0][1]
    with pytest.raises(Canceled):
        read_listening([path], progress=cancel_when(lambda *_: True))


@pytest.mark.long
def test_long_history_uses_bounded_memory(tmp_path):
    import tracemalloc

    path = tmp_path / "listens.zip"
    lines = [LISTEN.replace('"b"', f'"{i % 50}"') for i in range(1000)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive, archive.open("x.jsonl", "w") as stream:
        for _ in range(100):
            stream.write("".join(lines).encode())
    tracemalloc.start()
    batch = read_listening([path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert batch.n_rows == 100_000
    # 16 bytes per row, doubled by growing and sorting arrays, plus some MB of buffers. The text alone is 8 MB.
    assert peak < 100_000 * 80 + 4_000_000
