"""Answers on the command line."""

import csv
import json

from tests.command import run
from tests.experiments.votes import magnatagatune_file


def answer_some(library):
    ids = [song.id for song in library.songs()]
    library.judgments.add("Ann", "odd", ids[:3], 1)
    library.judgments.add("Zoë [b]", "like", ids[4:8], None)


def test_answers_survive_export_and_import(tiny_library, tmp_path):
    library, file = tiny_library.folder, tmp_path / "answers.csv"
    answer_some(tiny_library)
    before = tiny_library.judgments.answers()
    told = json.loads(run("answers", "export", file, "--json", library=library)[0])
    assert told == {"file": str(file), "answers": 2, "listeners": ["Ann", "Zoë [b]"]}
    tiny_library.judgments.forget_listener("Ann")
    told = json.loads(run("answers", "import", file, "--json", library=library)[0])
    assert told == {"read": 2, "added": 1, "known": 1, "unmatched": 0, "problems": []}
    back = tiny_library.judgments.answers()
    assert [(a.created_at, a.listener, a.song_ids, a.chosen) for a in back] == [
        (a.created_at, a.listener, a.song_ids, a.chosen) for a in before
    ]


def test_prints_summary_without_json_option(tiny_library, tmp_path):
    library, file = tiny_library.folder, tmp_path / "answers.csv"
    answer_some(tiny_library)
    out, _ = run("answers", "export", file, library=library)
    assert f"2 answers from 2 listeners written to {file}." in out
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    rows.append([cell if name != "song2_hash" else "gone" for name, cell in zip(rows[0], rows[1], strict=True)])
    for name in ("song2_artist", "song2_path"):
        rows[-1][rows[0].index(name)] = "[red]"
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    out, problems = run("answers", "import", file, library=library, expect=3)
    assert "3 answers read: 0 added, 2 already known." in out
    assert "left out: Line 4: “Song clicks 1” by [red] is not in this library." in problems


def test_reports_comparisons_of_public_data_set(tiny_library, tmp_path):
    library, file = tiny_library.folder, tmp_path / "comparisons_final.csv"
    paths = {song.id: f"{song.path.parent.name}/{song.path.name}" for song in tiny_library.songs()} | {99: "z/z.mp3"}
    a, b, c, *_ = paths
    file.write_text(magnatagatune_file([((a, b, c), (0, 2, 2)), ((a, b, 99), (1, 0, 0))], paths), "utf-8")
    told = json.loads(run("answers", "import", file, "--json", library=library, expect=3)[0])
    assert (told["read"], told["added"], told["unmatched"]) == (5, 4, 1)
    assert told["comparisons"] == {"used": 1, "unmatched": 1, "undecided": 1}
    out, problems = run("answers", "import", file, library=library, expect=3)
    assert "5 answers read: 0 added, 4 already known." in out
    assert "1 comparison used (1 without a majority), 1 unmatched." in out
    assert "left out: Line 3: “z/z.mp3” is not in this library." in problems


def test_rejects_other_file_type(tiny_library, tmp_path):
    file = tmp_path / "plays.csv"
    file.write_text("artist,title,plays\nx,y,1\n")
    _, problem = run("answers", "import", file, library=tiny_library.folder, expect=1)
    assert "plays.csv: the file does not contain answers" in problem
    _, problem = run("answers", "import", tmp_path / "no.csv", library=tiny_library.folder, expect=1)
    assert "cannot be read" in problem
    _, problem = run("answers", "export", tmp_path / "no" / "x.csv", library=tiny_library.folder, expect=1)
    assert "cannot be written" in problem
