"""The file of players in what `musicsim doctor` finds."""

from musicsim.explorer.health.doctor import PROBLEM, examine
from musicsim.extensions.player_engine.access import ACCESS_FILE
from musicsim.progress import no_progress


def test_a_file_of_players_that_cannot_be_read_is_found(tiny_library):
    (tiny_library.folder / ACCESS_FILE).write_text("[{")
    (problem,) = (finding for finding in examine(tiny_library, no_progress) if finding.level == PROBLEM)
    assert problem.what == "connections"
    assert ACCESS_FILE in problem.names[0]
