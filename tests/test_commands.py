"""All commands: their groups, examples and options, and the old names of options."""

import json
import re
import shlex
from collections import defaultdict

import pytest

from docs.references import load_commands
from musicsim.cli.old_options import OLD_OPTIONS
from musicsim.library import Library
from tests.command import run, run_to_end
from tests.test_references import list_commands

OF_SEVERAL = {
    "--artist": (2, "an artist: of the songs, or as their new tag"),
    "--descending": (2, "reverses the order"),
    "--dry-run": (2, "shows what would happen"),
    "--first": (2, "the first song of a playlist"),
    "--genre": (2, "a genre: of the songs, or as their new tag"),
    "--length": (2, "number of songs in a playlist"),
    "--like": (2, "songs that others should resemble"),
    "--listener": (3, "name of a listener"),
    "--minutes": (2, "length in minutes"),
    "--model": (3, "name of an existing model"),
    "--name": (6, "name of the result"),
    "--output": (2, "output of a network"),
    "--per-artist": (3, "largest number of results per artist"),
    "--replace": (3, "replaces what is there"),
    "--seed": (6, "seed of everything random"),
    "--sort": (2, "value to sort by"),
    "--stride": (2, "uses one of this many parts of a song"),
    "--trust-cluster": (2, "trusts a cluster without TLS"),
    "--undo": (3, "undoes the command"),
    "--use": (2, "makes the new model the active one"),
    "--with-passwords": (2, "includes the passwords"),
    "-n": (2, "number of songs in a playlist"),
}
"""The one meaning of each option that several commands describe in other words, with the number of descriptions."""


@pytest.fixture(scope="module")
def leaves():
    """All commands except groups, keyed by their full names."""
    return {
        name.removeprefix("musicsim "): command
        for name, command in list_commands(load_commands())
        if not hasattr(command, "commands")
    }


def test_option_has_the_same_meaning_in_all_commands(leaves):
    texts = defaultdict(set)
    for command in leaves.values():
        for option in command.params:
            for name in option.opts if option.param_type_name == "option" else ():
                texts[name].add(option.help.removesuffix(" Can be repeated."))
    several = {name: len(found) for name, found in texts.items() if len(found) > 1}
    assert several == {name: n for name, (n, _) in OF_SEVERAL.items()}


def test_commands_print_json_on_request(leaves):
    assert [name for name, command in leaves.items() if "--json" not in flags_of(command)] == []


def flags_of(command):
    return {flag for parameter in command.params for flag in parameter.opts}


def test_help_names_no_file_of_the_checkout(leaves):
    texts = [text for one in leaves.values() for text in (one.help, *(p.help for p in one.params if p.help))]
    assert [text for text in texts if re.search(r"\bdocs/", text)] == []


def test_old_options_are_renamed_with_a_warning(leaves, tiny_library):
    for name, new_names in OLD_OPTIONS.items():
        flags = flags_of(leaves[name])
        assert flags >= set(new_names.values()), name
        assert not flags & new_names.keys(), name
    new, _ = run("similar", 1, "--factor", "rhythm", "--json", library=tiny_library.folder)
    old, warning = run("similar", 1, "--by=rhythm", "--json", library=tiny_library.folder)
    assert old == new
    assert warning == "renamed: --by is called --factor now.\n"


def test_first_screen_shows_14_commands_and_names_the_groups(tiny_library):
    text, _ = run("--help", library=tiny_library.folder)
    assert len(re.findall(r"^│ [a-z]", text, re.MULTILINE)) == 14
    assert re.findall(r"─ (\w+) ─", text) == ["Options", "Start", "Listen", "Improve"]
    groups = re.search(r"More: musicsim help (\S+)", text)[1].split("|")
    shown, _ = run("help", groups[-1], library=tiny_library.folder)
    assert "musicsim snapshot" in shown
    assert "musicsim add" not in shown
    listed = json.loads(run("help", "--json", library=tiny_library.folder)[0])
    commands = {name.split()[1] for name, _ in list_commands(load_commands()) if " " in name}
    assert {one["name"] for one in listed} == commands
    assert {one["group"] for one in listed} >= set(groups)
    assert not {one["group"] for one in listed} & commands, "`help` takes both"


def test_help_of_a_command_is_that_of_its_option(tiny_library):
    for words in (["similar"], ["models", "use"]):
        assert run("help", *words, library=tiny_library.folder) == run(*words, "--help", library=tiny_library.folder)
    out, problem = run("help", "everything", library=tiny_library.folder, expect=2)
    assert "neither a command nor a group" in problem
    assert out == ""


def examples_of(command):
    return [line for line in command.epilog.splitlines() if line.startswith("musicsim ")]


def test_each_command_has_two_examples_which_can_be_parsed(leaves):
    for name, command in leaves.items():
        lines = examples_of(command)
        assert len(lines) == 2, name
        for line in lines:
            assert line.startswith(f"musicsim {name}"), line
            assert len(line) < 78, "fits into a terminal"
            command.make_context(name, shlex.split(line.removeprefix(f"musicsim {name}")))


RUNNABLE = (
    "info", "list", "similar", "playlist", "dialects", "albums list", "models list", "imports", "artists",
    "failed", "missing", "guess", "rules list", "tags runs", "splits list", "server list", "libraries list", "factors",
    "settings", "help", "answers reasons", "rules save", "export",
)  # fmt: skip


@pytest.mark.parametrize("name", RUNNABLE)
def test_examples_run_on_a_small_library(leaves, tiny_library, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for line in examples_of(leaves[name]):
        words = shlex.split(line)[1:]
        if "--library" not in words and "song.mp3" not in words:
            _, problem, code = run_to_end(*words, library=tiny_library.folder)
            assert code == 0 or problem.startswith("error: no "), (line, problem)


LISTING = (
    "list", "albums list", "imports", "artists", "duplicates", "failed", "missing", "rules list", "tags runs",
    "splits list", "server list", "server review",
)  # fmt: skip


@pytest.mark.parametrize("name", LISTING)
def test_empty_list_is_a_sentence_with_the_next_step(tmp_path, name):
    with Library.open(tmp_path / "library") as library:
        out, problem = run(*name.split(), library=library.folder)
        listed = json.loads(run(*name.split(), "--json", library=library.folder)[0])
    assert re.fullmatch(r"[A-Z][^\n]+\. [^\n]+\.\n", out), out
    assert problem == ""
    assert not any(listed.values() if isinstance(listed, dict) else listed)
