"""Tests of the file of players in `musicsim doctor`."""

from musicsim.explorer.health.doctor import PROBLEM, examine
from musicsim.extensions.player_engine.access import ACCESS_FILE
from musicsim.progress import no_progress


def test_unreadable_player_file_is_found(tiny_library):
    (tiny_library.folder / ACCESS_FILE).write_text("[{")
    (problem,) = (finding for finding in examine(tiny_library, no_progress) if finding.level == PROBLEM)
    assert problem.what == "connections"
    assert ACCESS_FILE in problem.names[0]
