"""Tests of ``musicsim evaluate --continue``."""

import json

from musicsim.library import Library
from tests.command import run


def test_cli_evaluates_held_out_playlists(tiny_library):
    library = tiny_library.folder
    tiny_library.close()
    with Library.open(library) as opened:
        ids = [song.id for song in opened.songs()]
        opened.add_playlists([(f"{n}", None, (ids[n % 5 :] + ids)[:7]) for n in range(12)], source="test")
    found = json.loads(run("evaluate", "--continue", "playlists", "--json", library=library)[0])
    assert (found["kind"], found["n_judged"]) == ("playlists", 12)
    assert {"walk", "item-kNN", "same artist"} < set(found["scores"])
    out, _ = run("evaluate", "--continue", "playlists", library=library)
    assert "NDCG" in out
    assert "Hit rate at 10" in " ".join(out.split())
    assert "0 sittings" in run("evaluate", "--continue", "sittings", library=library, expect=1)[1]
    assert "playlists, sittings" in run("evaluate", "--continue", "albums", library=library, expect=2)[1]
    both = run("evaluate", "--continue", "playlists", "--truth", "genre", library=library, expect=2)[1]
    assert "cannot be combined with" in both


def test_rejects_other_options_with_continue(tiny_library):
    arguments = ("evaluate", "--continue", "playlists")
    assert "cannot be combined with" in run(*arguments, "--model", "Sound", library=tiny_library.folder, expect=2)[1]
    assert "playlists, sittings" in run(*arguments[:2], "albums", library=tiny_library.folder, expect=2)[1]
    assert "or --continue" in " ".join(
        run(*arguments, "--against", "Codewords", library=tiny_library.folder, expect=2)[1].split()
    )
