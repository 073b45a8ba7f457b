"""The command line as a person and a machine use it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from starlette.testclient import TestClient
from typer.testing import CliRunner

from musicsim.api.http import http_interface
from musicsim.audio import DESCRIPTORS
from musicsim.cli import COMMANDS as PROGRAM
from musicsim.cli import console, program
from musicsim.cli.metavars import name_values
from musicsim.cli.options import add_options
from tests.command import run, run_process
from tests.sounds import write_collection, write_duplicates, write_song


@pytest.fixture(scope="module")
def library(built_library, tmp_path_factory):
    return shutil.copytree(built_library, tmp_path_factory.mktemp("cli") / "library")


def test_adds_and_lists_folder(tmp_path):
    music = write_collection(tmp_path / "music", n_songs=2, seconds=2)
    (music / "broken.mp3").write_text("no music")
    library = tmp_path / "library"
    out, _ = run_process("add", music, "--shortest", 1, "--json", library=library, expect=3)
    result = json.loads(out)
    assert (result["added"], result["songs"]) == (6, 6)
    assert [Path(f["path"]).name for f in result["failed"]] == ["broken.mp3"]
    out, _ = run_process("failed", "--json", library=library, expect=3)
    assert "broken.mp3" in json.loads(out)[0]["reason"]
    songs = json.loads(run_process("list", "--json", library=library)[0])
    assert len(songs) == 6
    info = json.loads(run_process("info", "--json", library=library)[0])
    assert info["songs"] == 6
    assert info["model"]["fitted_on_songs"] == 6


@pytest.mark.long
def test_pipe_gets_lines_of_progress(tmp_path):
    music = write_collection(tmp_path / "music", n_songs=2, seconds=2)
    code = "from musicsim.cli import console, main; console.LINE_EVERY_S /= 1000; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "add", music], stderr=subprocess.PIPE, text=True, check=True,
        env=os.environ | {"MUSICSIM_LIBRARY": str(tmp_path / "library")},
    )  # fmt: skip
    assert re.search(r"^\d of 6 · ", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr
    assert console.LINE_EVERY_S <= 10


def test_similar_accepts_id_or_file(library, tmp_path):
    songs = json.loads(run("list", "--json", library=library)[0])
    noise = next(s for s in songs if s["artist"] == "Artist noise")
    hits = json.loads(run("similar", noise["id"], "-k", 3, "--per-artist", 0, "--json", library=library)[0])
    assert [h["artist"] for h in hits] == ["Artist noise"] * 3
    query = write_song(tmp_path / "query.ogg", "tones", seed=123)
    hits = json.loads(run("similar", query, "-k", 2, "--json", library=library)[0])
    assert [h["artist"] for h in hits] == ["Artist tones"] * 2
    filtered = json.loads(
        run("similar", query, "--genre", "Genre noise", "--per-artist", 1, "--json", library=library)[0]
    )
    assert [h["genre"] for h in filtered] == ["Genre noise"]


def test_playlist_is_written_as_relative_m3u8(library, tmp_path):
    target = tmp_path / "lists" / "mine.m3u8"
    target.parent.mkdir()
    out, _ = run("playlist", "-n", 12, "--seed", 2, "-o", target, "--relative", "--json", library=library)
    steps = json.loads(out)
    assert len(steps["songs"]) == 12
    assert any(step["reason"] for step in steps["songs"])
    assert "" not in [step["reason"] for step in steps["songs"]], "unknown reasons are null"
    paths = [line for line in target.read_text().splitlines() if not line.startswith("#")]
    assert [(target.parent / p).resolve() for p in paths] == [Path(s["path"]) for s in steps["songs"]]
    again = json.loads(run("playlist", "-n", 12, "--seed", 2, "--json", library=library)[0])
    assert [s["id"] for s in again["songs"]] == [s["id"] for s in steps["songs"]]


def test_generated_playlist_is_saved_in_library(tiny_library):
    for n in (4, 3):  # the second one replaces the first one
        out, _ = run("playlist", "-n", n, "--save", "Late night", "--json", library=tiny_library.folder)
    ids = [step["id"] for step in json.loads(out)["songs"]]
    (saved,) = (playlist for playlist in tiny_library.playlists() if playlist.name == "Late night")
    assert list(saved.song_ids) == ids


def test_prints_tables_without_json_option(library):
    out, _ = run("list", "title:noise 2", library=library)
    assert "Song noise 2" in out
    assert "Song tones" not in out


def _say(*arguments, library, columns):
    said = CliRunner(env={"COLUMNS": str(columns), "MUSICSIM_LIBRARY": str(library)}).invoke(program, arguments)
    assert said.exit_code == 0, said.output
    return said.output


def test_narrow_terminal_lists_fewer_columns(library):
    def heads(*arguments, columns):
        return re.findall(r"\w+", _say("list", *arguments, library=library, columns=columns).splitlines()[1])

    always = ["id", "title", "artist", "length"]
    assert heads(columns=40) == always
    assert heads("--sort", "brightness", columns=60)[:5] == [*always, "bright"]
    assert always < heads(columns=80) < heads(columns=200)
    assert heads(columns=200)[-1] == [*DESCRIPTORS.values()][-1].heading
    said = _say("list", library=library, columns=80)
    assert "Song noise 2" in said
    assert "--json shows all values" in said
    loudness = json.loads(_say("list", "--json", library=library, columns=80))[0]["loudness"]
    line = _say("list", "--sort", "loudness", library=library, columns=200)
    assert f" {loudness:.{DESCRIPTORS['loudness'].digits}f} " in line, "as in the table of songs on the Library page"


def test_info_is_readable(library):
    said = _say("info", library=library, columns=200)
    assert "None" not in said
    assert not set("[]{}'") & set(said)
    assert re.search(r"fitted on songs: \d+", said)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [(("playlist", "-n", 2, "--seed", 3, "--save", "Evening"), "Saved as “Evening”."), (("info",), "other folder")],
)
def test_each_note_has_its_own_line(tiny_library, tmp_path, arguments, line):
    (other := tmp_path / "other folder").mkdir()
    tiny_library.files.add_roots([other])
    out, _ = run(*arguments, library=tiny_library.folder)
    assert "\\n" not in out
    assert any(printed.strip(" │┃").endswith(line) for printed in out.splitlines())


def test_line_break_in_a_note_is_escaped(capsys):
    console.show(("name",), [("home",)], caption=["its file is missing: a\nb", "second"])
    assert "a\\nb" in capsys.readouterr().out


def test_unknown_values_are_empty_cells(capsys):
    console.show(("name", "synced"), [("home", None)])
    said = capsys.readouterr().out
    assert "home" in said
    assert "None" not in said


def test_similar_names_library(library):
    assert f"Library: {library.name}" in _say("similar", "1", library=library, columns=80)


def test_values_in_help_have_whole_names():
    def add(address: Annotated[str, typer.Argument()], names: Annotated[list[str], typer.Option()]) -> None:
        pass

    one = typer.Typer()
    one.command()(add)
    command = typer.main.get_command(one)
    name_values(command)
    assert [parameter.metavar for parameter in command.params[:2]] == ["ADDRESS", "NAME"]


def test_lists_songs_by_descriptors(library):
    songs = json.loads(run("list", "--sort", "brightness", "--descending", "--json", library=library)[0])
    of_all = [song["brightness"] for song in songs]
    assert of_all == sorted(of_all, reverse=True)
    by_tempo = json.loads(run("list", "--sort", "tempo", "--json", library=library)[0])
    known = [song["tempo"] for song in by_tempo if song["tempo"] is not None]
    assert [song["tempo"] for song in by_tempo] == [*sorted(known), *[None] * (len(songs) - len(known))]
    assert "bright" in run("list", library=library)[0]
    _, err = run("list", "--sort", "color", library=library, expect=2)
    assert "--sort should be one of id, title" in " ".join(err.split())


def test_descriptor_filters_narrow_search(library):
    songs = json.loads(run("list", "--json", library=library)[0])
    middle = sorted(song["brightness"] for song in songs)[len(songs) // 2]
    arguments = ("similar", songs[0]["id"], "-k", 50, "--per-artist", 0, "--brightness", 0, middle + 1e-3, "--json")
    hits = json.loads(run(*arguments, library=library)[0])
    right = {song["id"] for song in songs if song["brightness"] <= middle + 1e-3} - {songs[0]["id"]}
    assert {hit["id"] for hit in hits} == right


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("similar", "9999"), "song 9999 does not exist"),
        (("similar", "/nowhere.mp3"), "neither a file nor the id of a song"),
        (("add", "/nowhere"), "no such file or folder"),
        (("playlist", "--first", "9999"), "song 9999"),
        (("playlist", "-o", "x.pdf"), "use a file name that ends in"),
    ],
)
def test_errors_are_one_sentence_on_stderr(library, arguments, message):
    out, err = run(*arguments, library=library, expect=1)
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


def test_version_option_needs_no_command(library):
    assert run("--version", library=library)[0].startswith("musicsim ")


def test_verbosity_options_change_stderr(built_library, tmp_path):
    library = shutil.copytree(built_library, tmp_path / "library")
    for walk in library.glob("models/*/clusters.npz"):
        walk.write_bytes(b"damaged")
    asked = ("playlist", "-n", 3)
    assert "cannot be read; the next job will rebuild it" in run(*asked, library=library)[1]
    assert run("--quiet", *asked, library=library)[1] == ""
    _, said = run("--quiet", "similar", 9999, library=library, expect=1)
    assert "song 9999 does not exist" in " ".join(said.split()), "what ends the command is said all the same"
    _, said = run("--verbose", "--quiet", *asked, library=library, expect=2)
    assert "not both" in said
    run("--verbose", "evaluate", library=library)
    log = (library / "logs" / "musicsim.log").read_text()
    assert re.search(r" INFO +musicsim\.cli\S+: command evaluate: done in [\w. ]+$", log, re.MULTILINE)
    assert log.count(" WARNING ") >= 2


def test_missing_library_gives_clear_error(tmp_path):
    _, err = run("list", library=tmp_path / "none", expect=1)
    assert "no library found" in " ".join(err.split())


@pytest.mark.long
def test_library_maintenance_commands(tmp_path):
    """Settings, scan, missing, edit, artists, duplicates and removal, on one library."""
    library, music = tmp_path / "library", tmp_path / "music"
    for n, artist in enumerate(("The Beatles", "Beatles, The", "Other")):
        write_song(music / f"{n}.flac", seed=n, seconds=2, title=f"song {n}", artist=artist)

    def ask(*arguments, expect=0):
        return json.loads(run(*arguments, "--json", library=library, expect=expect)[0])

    assert ask("add", music, "--workers", 1)["songs"] == 0
    assert [f["kind"] for f in ask("failed")] == ["short"] * 3
    assert ask("settings", "shortest_s", 1.5) == {"shortest_s": 1.5}
    assert ask("scan")["added"] == 3
    assert ask("scan")["unchanged"] == 3
    ids = {song["title"]: song["id"] for song in ask("list")}

    (edited,) = ask("edit", ids["song 2"], "--genre", "soul", "--year", 1970)
    assert (edited["genre"], edited["year"]) == ("soul", 1970)
    assert ask("edit", ids["song 2"], "--undo")[0]["genre"] is None

    (suggestion,) = ask("artists")["suggestions"]
    assert set(suggestion[1]) == {"The Beatles", "Beatles, The"}
    merged = ask("artists", "--merge", "Beatles, The", "--into", "The Beatles")
    assert merged == {"suggestions": [], "merged": {"Beatles, The": "The Beatles"}}
    assert ask("artists", "--unmerge", "The Beatles")["merged"] == {}

    (music / "1.flac").unlink()
    assert ask("scan")["missing"] == 1
    assert [song["title"] for song in ask("missing")] == ["song 1"]
    assert ask("missing", "--forget")[0]["id"] == ids["song 1"]
    assert ask("missing") == []

    assert ask("duplicates") == []
    assert ask("info")["roots"] == [str(music)]
    assert ask("forget", music)["forgotten"] == 2
    assert ask("info")["songs"] == 0


@pytest.mark.long
def test_duplicates_are_the_same_recording(tmp_path):
    music, library = write_duplicates(tmp_path / "music"), tmp_path / "library"
    run("add", music, "--workers", 1, library=library)
    (group,) = json.loads(run("duplicates", "--json", library=library)[0])
    assert [song["title"] for song in group] == ["melody 0", "copy"]  # not: higher, faster, again
    assert group[0]["match"] is None
    assert 0.95 <= group[1]["match"] <= 1
    assert re.search(r"copy .* 9\d%|copy .* 100%", run("duplicates", library=library)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("settings", "no_such", "1"), "'no_such' is not a setting"),
        (("settings", "index_kind", "forest"), "'forest' should be one of automatic, partition, exact"),
        (("settings", "n_workers", '"many"'), "must be a finite number of at least 0"),
        (("settings", "keep_frames", "3"), "must be true or false"),
        (("settings", "shortest_s", "soon"), "shortest_s soon"),
        (("edit", "1", "--title", " "), "needs a title"),
        (("artists", "--merge", "x"), "--into NAME"),
    ],
)
def test_wrong_usage_gives_clear_error(library, arguments, message):
    _, err = run(*arguments, library=library, expect=2)
    assert message in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("edit", "9999", "--title", "x"), "song 9999 does not exist"),
        (("duplicates", "--separate", "1", "2"), "are not listed as duplicates"),
        (("forget", "/nowhere"), "is not a folder of this library"),
    ],
)
def test_unknown_names_give_clear_errors(library, arguments, message):
    _, err = run(*arguments, library=library, expect=1)
    assert message in " ".join(err.split())


COMMANDS = (
    *("add", "app", "artists", "demo", "duplicates", "edit", "failed", "forget", "info", "list", "missing"),
    *("playlist", "scan", "settings", "similar"),
)


def test_command_help_starts_with_its_summary_once():
    commands = typer.main.get_command(program).commands
    for name, command in commands.items():
        sentence, full = command.help, command.load().help
        assert full.split("\n\n")[0] == sentence, name
        assert full.count(sentence) == 1, name


def test_commands_are_in_modules_of_same_name():
    modules = {record.target.split(":")[0].replace("_", "-") for record in PROGRAM.values()}
    assert modules <= set(PROGRAM)


def test_cli_and_http_return_same_fields(library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library))
    with TestClient(http_interface()) as client:
        answers = {path: client.get(path).json()[0] for path in ("/songs?limit=1", "/models", "/songs/1/similar?k=1")}
        playlist = client.get("/playlist?length=2&seed=3").json()
    answer = answers["/songs?limit=1"]
    song = next(song for song in json.loads(run("list", "--json", library=library)[0]) if song["id"] == answer["id"])
    assert answer.items() <= song.items()
    paths = {"folder", "notes", "path"}
    assert set(song) - set(answer) == paths, "answers tell no paths"
    model = json.loads(run("models", "list", "--json", library=library)[0])[0]
    assert answers["/models"].items() <= model.items()
    hit = json.loads(run("similar", 1, "-k", 1, "--json", library=library)[0])[0]
    assert answers["/songs/1/similar?k=1"].items() <= hit.items()
    steps = json.loads(run("playlist", "-n", 2, "--seed", 3, "--json", library=library)[0])["songs"]
    assert [set(step) - set(answer) for step, answer in zip(steps, playlist, strict=True)] == 2 * [paths]
    assert all(answer.items() <= step.items() for step, answer in zip(steps, playlist, strict=True))


def test_playlists_last_an_hour_by_default(library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library))
    asked = ("playlist", "--seed", 3, "--json")
    made = json.loads(run(*asked, library=library)[0])
    assert made == json.loads(run(*asked, "--minutes", 60, library=library)[0])
    assert made["notes"][-1].endswith("minutes instead of 60: no closer match")
    with TestClient(http_interface()) as client:
        assert [song["id"] for song in client.get("/playlist?seed=3").json()] == [song["id"] for song in made["songs"]]


def test_extension_adds_options_to_command():
    def show(song: Annotated[int, typer.Argument()], name: Annotated[str, typer.Option()] = "x") -> None:
        typer.echo(f"{song} {name}")

    @add_options
    def more(command, *, times: Annotated[int, typer.Option(help="How often.")] = 1, **values):
        for _ in range(times):
            command(**values)

    program = typer.Typer()
    program.command()(more(show))
    assert CliRunner().invoke(program, ["7", "--name", "y", "--times", "2"]).output == "7 y\n7 y\n"
    assert CliRunner().invoke(program, ["7"]).output == "7 x\n"
    assert CliRunner().invoke(program, ["7", "--times", "z"]).exit_code == 2
