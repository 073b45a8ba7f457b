"""Tests of CSV tables: no cell is a formula, and our importers read the original text."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.library.disk.csv_cells import as_csv, protect_cell, restore_cell
from musicsim.library.importing import NamedSong, read_listening

FORMULAS = ["=HYPERLINK(1)", "@SUM(A1)", "+1+cmd|' /C calc'!A0", "-2", "\t=1", " =1", "'=1", "＝1", "\rx"]


@pytest.mark.parametrize("text", FORMULAS)
def test_formula_becomes_text(text):
    assert protect_cell(text) == "'" + text
    assert restore_cell("'" + text) == text


def test_numbers_and_plain_text_are_unchanged():
    cells = [-3, 2.5, None, "", "Rock 'n' Roll", "'Round Midnight", "a = b"]
    assert [protect_cell(cell) for cell in cells] == cells


@given(st.text())
def test_any_text_round_trips(text):
    assert restore_cell(protect_cell(text)) == text


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (("listener", "artist", "title", "plays"), ("-ann", "@me", "=1+1", 3)),
        (("artist", "title", "tag", "weight"), ("@me", "=1+1", "+loud", 3)),
        (("playlist", "category", "position", "artist", "title"), ("=list", "-", 1, "@me", "=1+1")),
    ],
)
def test_importer_restores_exported_tables(tmp_path, columns, row):
    path = tmp_path / "own.csv"
    path.write_bytes(as_csv(columns, [row]))
    cells = list(csv.reader(io.StringIO(path.read_text(), newline="")))[1]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    batch = read_listening([path])
    assert batch.songs == (NamedSong("@me", "=1+1"),)
    assert batch.groups[0][0] in row
