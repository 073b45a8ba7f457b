"""Training and models on the command line."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from musicsim.library import Library
from tests.command import run
from tests.waiting import PATIENCE_S


@pytest.fixture
def library(styles_library, tmp_path):
    """A library of three genres that the test may change."""
    return shutil.copytree(styles_library, tmp_path / "libraries" / "library")


def names(library) -> dict[str, bool]:
    """Return models by name, and whether each is in use; without Codewords, which every library has."""
    listed = {m["name"]: m["in_use"] for m in json.loads(run("models", "list", "--json", library=library)[0])}
    assert listed.pop("Codewords") is False
    return listed


def test_model_lifecycle(library, tmp_path):
    done = json.loads(
        run("train", "--from", "genre", "--strength", 100, "--name", "mine", "--json", library=library)[0]
    )
    assert (done["model"], done["in_use"], done["report"]["C"]) == ("mine", False, 100.0)
    assert done["report"]["settings"]["supervision"] == "genre"
    assert set(done["report"]["leads"]) == {"auc", "map", "mrr", "precision"}
    assert names(library) == {"Sound": True, "mine": False}
    run("models", "use", "mine", library=library)
    assert names(library) == {"Sound": False, "mine": True}
    sent = tmp_path / "sent.musicsim"
    run("models", "export", "mine", sent, library=library)
    run("models", "rename", "mine", "ours", library=library)
    out, _ = run("models", "import", sent, library=library)
    assert "mine was imported" in out
    assert names(library) == {"Sound": False, "ours": True, "mine": False}
    out, _ = run("models", "delete", "ours", library=library)
    assert "Sound is now in use" in out
    assert names(library) == {"Sound": True, "mine": False}


def test_similar_and_playlist_use_named_model(library):
    run("models", "add", "histogram", "--name", "plain", library=library)
    answers = {
        model: run("similar", 1, "-k", 3, "--no-hub-reduction", "--model", model, "--json", library=library)[0]
        for model in ("Sound", "plain")
    }
    similarities = {m: [hit["similarity"] for hit in json.loads(text)] for m, text in answers.items()}
    assert similarities["Sound"] != similarities["plain"]
    run("models", "use", "plain", library=library)
    in_use = run("similar", 1, "-k", 3, "--no-hub-reduction", "--json", library=library)[0]
    assert in_use == answers["plain"]
    listed = run("playlist", "-n", 3, "--seed", 1, "--model", "Sound", "--json", library=library)[0]
    assert len(json.loads(listed)["songs"]) == 3
    _, problem = run("similar", 1, "--model", "other", library=library, expect=1)
    assert "It has: 'Sound', 'Codewords', 'plain'" in problem


def test_hub_reduction_option_changes_similarities(library):
    def similarities(*options):
        hits = json.loads(run("similar", 1, "-k", 5, *options, "--json", library=library)[0])
        return [hit["similarity"] for hit in hits]

    assert similarities("--hub-reduction") == similarities()  # on by default
    assert similarities("--no-hub-reduction") != similarities()


def test_prints_verdict_without_json_option(library):
    out, _ = run("train", "--from", "genre", "--strength", 100, library=library)
    assert "Genres: No difference shown: similar songs rank about as high as before training. AUC " in out
    assert "95% interval" in out
    assert "musicsim models use 'Genres'" in out
    out, _ = run("models", "list", library=library)
    assert "learned from songs of the same genre" in out


@pytest.mark.parametrize(
    ("arguments", "expect", "words"),
    [
        (("train", "--from", "dreams"), 2, "--from should be one of plays, sittings"),
        (("train", "--loss", "hinge"), 2, "--loss should be one of auc"),
        (("train", "--strength", "-1"), 2, "a number above 0"),
        (("train", "--strength", "strong"), 2, "Input should be a valid number"),
        (("train",), 1, "nobody has played two artists"),
        (("train", "--from", "genre", "--on", "nothing"), 1, "does not have a model 'nothing'"),
        (("models", "use", "nothing"), 1, "does not have a model 'nothing'"),
        (("models", "delete", "Sound"), 1, "cannot be deleted"),
        (("models", "rename", "Sound", "x"), 1, "built-in models cannot be renamed"),
        (("models", "add", "magic"), 2, "REPRESENTATION must be one of"),
        (("models", "add", "ppk", "--codewords", 4, "--tau", 8), 2, "--tau 8 must be at most"),
        (("models", "add", "own"), 2, "REPRESENTATION must be one of"),
        (("models", "import", __file__), 1, "no musicsim model can be read"),
    ],
)
def test_impossible_operations_give_clear_errors(library, arguments, expect, words):
    _, problem = run(*arguments, library=library, expect=expect)
    assert words in " ".join(problem.replace("│", " ").split())


@pytest.mark.long
@pytest.mark.parametrize(("interrupts", "kept"), [(1, True), (2, False)])
def test_ctrl_c_once_keeps_best_and_twice_cancels(library, interrupts, kept):
    """The interrupts come at the first cut, because there may be no second one."""
    script = (
        "import os, signal, sys\n"
        "from musicsim.explorer.learning import ranking\n"
        "original, told = ranking._Watch.__call__, []\n"
        "def watched(self, step):\n"
        f"    for _ in range({interrupts} if not told else 0):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    told.append(step)\n"
        "    return original(self, step)\n"
        "ranking._Watch.__call__ = watched\n"
        "sys.argv = ['musicsim', 'train', '--from', 'genre', '--strength', '100', '--name', 'mine']\n"
        "from musicsim.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        env=os.environ | {"MUSICSIM_LIBRARY": str(library), "COLUMNS": "200"},
    )  # fmt: skip
    assert "keeping the best model so far" in done.stderr
    assert done.returncode == (0 if kept else 128 + signal.SIGINT), done.stderr
    with Library.open(library) as opened:
        assert [m.name for m in opened.models.all()] == ["Sound", "Codewords"] + ["mine"] * kept
        assert len(list(opened.models.folder.iterdir())) == 2 + kept
