"""Tests of rules as files: JSON, Navidrome's smart playlists, and lists of the current songs."""

import json
import shutil

import pytest

from musicsim.errors import LibraryError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.rules.files import as_navidrome, export_rule, import_rule
from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore
from musicsim.library import Library
from tests.command import run
from tests.sounds import open_library


def save(library, name, *where, **options):
    return RuleStore(library).save(name, RuleRequest(where=where, **options).rule())


def test_rule_is_moved_to_another_library(tiny_library, collection, tmp_path):
    songs = {song.title: song.id for song in tiny_library.songs()}
    title = min(songs)
    saved = save(tiny_library, "like it", f"similar:3@'{title}'", "tempo:>1", order="similar")
    export_rule(take_snapshot(tiny_library), saved, tmp_path / "rule.json")
    with open_library(tmp_path / "other") as other:
        with pytest.raises(LibraryError, match="a song that the rule compares with is not in this library"):
            import_rule(other, tmp_path / "rule.json")
        for path in sorted(collection.rglob("*.flac"), reverse=True):  # the ids differ
            other.add(path)
        imported = import_rule(other, tmp_path / "rule.json")
        assert imported.name == "like it"
        (song_id,) = imported.rule.conditions[0].songs
        assert other.song(song_id).title == title
        assert song_id != songs[title]
        assert (str(saved.rule), str(imported.rule)) == tuple(
            f"similar:3@{i} tempo:>1" for i in (songs[title], song_id)
        )
    assert import_rule(tiny_library, tmp_path / "rule.json").rule == saved.rule


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": "x"}', '{"name": "x", "groups": [], "order": "loud"}'])
def test_invalid_file_is_refused(tiny_library, tmp_path, content):
    (tmp_path / "rule.json").write_text(content)
    with pytest.raises(LibraryError, match=r"rule\.json is not a rule"):
        import_rule(tiny_library, tmp_path / "rule.json")
    assert RuleStore(tiny_library).all() == []


def test_smart_playlist_has_conditions_of_navidrome():
    rule = RuleRequest(
        where=(
            "year:1980..1989", "rating:4..", "-played:30d", "length:<5:30", "genre:=Jazz,Soul", "-artist:=Prince",
            "-title:remix", "tag:=loved or plays:>3",
        ),
        order="played", songs=50,
    ).rule()  # fmt: skip
    assert as_navidrome("My mix", rule) == {
        "name": "My mix",
        "comment": f"musicsim: {rule}",
        "all": [
            {
                "all": [
                    {"inTheRange": {"year": [1980, 1989]}},
                    {"any": [{"gt": {"rating": 4}}, {"is": {"rating": 4}}]},
                    {"notInTheLast": {"lastPlayed": 30}},
                    {"lt": {"duration": 330}},
                    {"any": [{"is": {"genre": "Jazz"}}, {"is": {"genre": "Soul"}}]},
                    {"isNot": {"artist": "Prince"}},
                    {"notContains": {"title": "remix"}},
                ]
            },
            {"any": [{"is": {"loved": True}}, {"gt": {"playCount": 3}}]},
        ],
        "sort": "lastPlayed",
        "order": "asc",
        "limit": 50,
    }
    assert as_navidrome("All", RuleRequest().rule())["all"] == [{"gt": {"playCount": -1}}]
    assert as_navidrome("One", RuleRequest(where=("tempo:90",), any=True).rule())["any"] == [{"is": {"bpm": 90}}]


def test_smart_playlist_without_counterpart_is_refused():
    wrong = RuleRequest(where=("energy:>3", "calm", "year:>3"), order="energy", minutes=60).rule()
    with pytest.raises(LibraryError, match=r"energy:>3; \(calm\); order energy; the limit in minutes"):
        as_navidrome("x", wrong)


def test_commands_save_show_export_and_delete(tiny_library, tmp_path):
    folder = tiny_library.folder
    tempos = sorted(song.tempo for song in tiny_library.songs() if song.tempo)
    middle = tempos[len(tempos) // 2]
    expected = [song.id for song in tiny_library.songs() if song.tempo and song.tempo >= middle]

    def asked(*arguments, **options):
        return json.loads(run("rules", *arguments, "--json", library=folder, **options)[0])

    assert "no rules" in run("rules", "list", library=folder)[0]
    saved = asked("save", "Fast", "--where", f"tempo:{middle}..", "--order", "tempo", "--songs", 3)
    assert (saved["matching"], saved["songs"]) == (len(expected), min(3, len(expected)))
    shown = asked("show", "Fast")
    assert {song["id"] for song in shown["songs"]} <= set(expected)
    assert [song["tempo"] for song in shown["songs"]] == sorted(song["tempo"] for song in shown["songs"])
    assert [one["name"] for one in asked("list")] == ["Fast"]
    assert f"tempo:{middle:.10g}..: {len(expected)} songs" in run("rules", "show", "Fast", library=folder)[0]
    assert asked("export", "Fast", tmp_path / "fast.m3u8")["songs"] == len(shown["songs"])
    lines = (tmp_path / "fast.m3u8").read_text().splitlines()
    paths = {song["id"]: song["path"] for song in shown["songs"]}
    assert [line for line in lines if not line.startswith("#")] == list(paths.values())
    assert asked("export", "Fast", tmp_path / "fast.json")["songs"] is None
    assert asked("delete", "Fast")["name"] == "Fast"
    assert asked("list") == []
    asked("import", tmp_path / "fast.json")
    assert asked("show", "Fast")["songs"] == shown["songs"]
    assert "use a file name that ends in" in run("rules", "export", "Fast", "x.txt", library=folder, expect=1)[1]
    assert "must be followed by a number" in run("rules", "save", "x", "--where", "bpm:x", library=folder, expect=2)[1]
    assert "nothing matches" in run("rules", "save", "x", "--where", "xyzzyq", library=folder, expect=1)[1]
    assert [one["name"] for one in asked("list")] == ["Fast"]


def test_restored_backup_contains_rules(tiny_library, tmp_path):
    saved = save(tiny_library, "Fast", "tempo:>120")
    run("backup", tmp_path / "all.zip", library=tiny_library.folder)
    run("restore", tmp_path / "all.zip", "--yes", library=tmp_path / "restored")
    with Library.open(tmp_path / "restored") as restored:
        assert RuleStore(restored).get("Fast") == saved
    shutil.rmtree(tmp_path / "restored")
