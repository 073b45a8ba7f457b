"""The check of prose finds what it promises, at its line, and nothing in plain sentences."""

import re

import pytest

from tests.prose import find_faults, read_forbidden_words, read_source, split_sentences

FORBIDDEN = re.compile("|".join(map(re.escape, read_forbidden_words())))


@pytest.mark.parametrize(
    "sentence",
    [
        "What is no picture counts as none.",
        "The songs take 3 ms a song.",
        "The index is told the number of rows.",
        "The likeness of two songs is a number.",
        "All but the last song are played, nothing but noise is left.",
        " ".join(["word"] * 31),
    ],
)
def test_odd_sentences_are_found(sentence):
    assert list(find_faults(sentence, FORBIDDEN))


@pytest.mark.parametrize(
    "sentence",
    ["Whether to play the song.", "There is no index yet.", "What sounds like this?", "A search takes 3 ms per song."],
)
def test_plain_sentences_pass(sentence):
    assert not list(find_faults(sentence, FORBIDDEN))


def test_sentences_have_their_lines(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('"""Read the songs.\n\nA song has a file, e.g. an MP3.\n"""\n\nx = 1  # seconds of sound read\n')
    assert list(read_source(module)) == [
        (1, "Read the songs."), (3, "A song has a file, e.g. an MP3."), (6, "seconds of sound read")
    ]  # fmt: skip


def test_parameters_of_a_docstring_are_separate_sentences():
    text = "Parameters\n----------\nX : ndarray of shape (n, d)\n    One row per song.\ny : int\n    Classes of songs."
    assert [sentence for _, sentence in split_sentences(text)] == [
        "X : ndarray of shape (n, d)", "One row per song.", "y : int", "Classes of songs."
    ]  # fmt: skip
