"""Music at addresses of fsspec: listed, read in blocks, and described as the same files here are."""

import html
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest

from musicsim.addresses import RemotePath, is_address, located
from musicsim.audio import analyse_sound
from musicsim.library.scan.files import content_hash, find_audio
from musicsim.library.tags import read_tags
from tests.sounds import open_library, write_collection, write_song

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def memory():
    """A file system in memory, empty before and after."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.fixture
def served(tmp_path):
    """A folder behind a web server, its address, and how many bytes of each file were asked for."""
    from werkzeug.serving import make_server
    from werkzeug.utils import send_file
    from werkzeug.wrappers import Response

    folder = tmp_path / "served"
    folder.mkdir()
    asked = []

    def answer(environ, start_response):
        path = folder / unquote(environ["PATH_INFO"]).strip("/")
        if path.is_dir():
            names = [f"{child.name}/" if child.is_dir() else child.name for child in path.iterdir()]
            links = "".join(f'<a href="{html.escape(name)}">x</a>' for name in names)
            response = Response(links, mimetype="text/html")
        elif path.exists():
            response = send_file(path, environ, conditional=True)
            if environ["REQUEST_METHOD"] == "GET":
                asked.append((path.name, int(response.headers["Content-Length"])))
        else:
            response = Response("nothing", 404)
        return response(environ, start_response)

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield folder, f"http://127.0.0.1:{server.port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("address", ["s3://bucket/a b.mp3", "sftp://me@host/music", "https://host/x"])
def test_addresses_are_told_from_paths(address):
    assert is_address(address)
    assert is_address(Path(address))
    assert isinstance(located(Path(address)), RemotePath)


@pytest.mark.parametrize(
    "path", ["/music/a.mp3", "a:/b", "music", "file:///music", "/s3:/bucket", "C:/music"]
)
def test_paths_of_this_machine_are_no_addresses(path):
    assert not is_address(path)
    assert type(located(Path(path))) is type(Path())


def test_music_at_an_address_is_found_by_the_rules_of_a_walk(memory):
    for name in ("/m/a.flac", "/m/x/b.MP3", "/m/.hidden/c.mp3", "/m/@eaDir/d.mp3", "/m/notes.txt"):
        memory.pipe(name, b"12345")
    found = find_audio([Path("memory://m")])
    assert [str(file.path) for file in found.files] == ["memory:/m/a.flac", "memory:/m/x/b.MP3"]
    assert {file.size for file in found.files} == {5}
    assert all(file.mtime_ns > 1e18 for file in found.files)
    (alone,) = find_audio([Path("memory://m/notes.txt")]).files
    assert str(alone.path) == "memory:/m/notes.txt"


def test_what_cannot_be_listed_is_a_problem_and_its_songs_may_be_there(memory):
    for address in (Path("memory://nowhere"), Path("nosuch://bucket")):
        found = find_audio([address])
        assert [path for path, _ in found.problems] == [address]
        assert found.unread(address / "a.mp3")


@pytest.mark.parametrize("ending", [".flac", ".ogg", ".wav", ".mp3"])
def test_a_file_at_an_address_sounds_like_the_same_file_here(memory, tmp_path, ending):
    here = write_song(tmp_path / f"song{ending}", "tones", seed=3)
    memory.pipe(f"/m/song{ending}", here.read_bytes())
    there = located(Path(f"memory://m/song{ending}"))
    one, other = analyse_sound(here, aspects=True), analyse_sound(there, aspects=True)
    assert (one.sound_hash, one.duration_s, one.notes) == (other.sound_hash, other.duration_s, other.notes)
    assert content_hash(here) == content_hash(there)
    assert read_tags(here) == read_tags(there)


def test_two_readers_of_an_address_do_not_move_each_other(memory):
    memory.pipe("/m/a.bin", bytes(range(200)))
    path = located(Path("memory://m/a.bin"))
    with path.open("rb") as one, path.open("rb") as other:
        assert one.read(3) == b"\0\1\2"
        other.seek(100)
        assert other.read(1) == b"d"
        assert one.read(2) == b"\3\4"


@pytest.mark.slow
def test_a_scan_of_a_web_server_makes_the_library_of_its_folder(served, tmp_path):
    folder, address, asked = served
    write_collection(folder, n_songs=2)
    (folder / "broken.mp3").write_text("no music")
    with open_library(tmp_path / "here") as here, open_library(tmp_path / "there") as there:
        here.add(folder)
        report = there.add(address)
        assert (report.n_added, len(report.failures)) == (6, 1)
        assert {s.title for s in there.songs()} == {s.title for s in here.songs()}
        assert sorted(there.content_hashes()) == sorted(here.content_hashes())
        kept = [
            {p.name: p.read_bytes() for p in lib.frame_files.folder.glob("??/*")} for lib in (here, there)
        ]
        assert kept[0] == kept[1]
        sizes = {path.name: path.stat().st_size for path in folder.rglob("*.flac")}
        for name, size in sizes.items():
            assert sum(n for asked_name, n in asked if asked_name == name) <= size + 1000, (
                "read more than once"
            )
        again = there.add(address)
        assert (again.n_unchanged, again.n_missing, again.n_added) == (7, 0, 0)
        next(iter(folder.rglob("*.flac"))).unlink()
        assert there.add(address).n_missing == 1
