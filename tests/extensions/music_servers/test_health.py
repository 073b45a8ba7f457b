"""Tests of connections to music servers in `musicsim doctor`: findings and reports."""

from musicsim import logs
from musicsim.explorer.health.doctor import PROBLEM, examine
from musicsim.extensions.music_servers.connections import SERVERS_FILE, Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.progress import no_progress
from tests.command import run


def test_unreadable_server_list_is_found(tiny_library):
    (tiny_library.folder / SERVERS_FILE).write_text("[{")
    (problem,) = (finding for finding in examine(tiny_library, no_progress) if finding.level == PROBLEM)
    assert problem.what == "connections"
    assert SERVERS_FILE not in problem.words
    assert SERVERS_FILE in problem.names[0]


def test_server_song_needs_no_file(tiny_library):
    songs = tiny_library.songs()
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/nowhere/' || song_id || '.flac'")
    ServerSongs(tiny_library).write("home", [ServerSong(f"so-{song.id}", song_id=song.id) for song in songs[1:]])
    (finding,) = (finding for finding in examine(tiny_library, no_progress) if finding.what == "files")
    assert finding.names == (f"/nowhere/{songs[0].id}.flac",)


def test_report_contains_no_server_credentials(tiny_library, tmp_path):
    words = ["marzipan", "kumquat", "xylophone"]
    connection = Connection("home", f"https://{words[0]}.example", words[1], words[2])
    Connections(tiny_library).put(connection)
    with logs.open_log(tiny_library.folder):
        logs.begin()
        logs.logging.getLogger("musicsim.test").warning("%s %r", words[2], connection)
    run("report", tmp_path / "report.txt", library=tiny_library.folder)
    assert not [word for word in words if word in (tmp_path / "report.txt").read_text()]
