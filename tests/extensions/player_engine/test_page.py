"""Tests of the section Players of the Library page, without a browser."""

from musicsim.extensions.player_engine.access import PlayerAccess, PlayerRules, player_access
from tests.pages.actions import open_page, show_section


def test_players_need_access_and_follow_saved_rules(full):
    app = show_section(open_page("library"), "servers")
    app = app.toggle(key="players_on").set_value(True).run()
    token = player_access(full).token
    assert token in {code.value for code in app.code}
    app.multiselect(key="players_no_artists").set_value(["Artist noise"]).run()
    app = app.button(key="players_save").click().run()
    assert not app.exception
    assert player_access(full) == PlayerAccess(token=token, rules=PlayerRules(no_artists={"Artist noise"}))
    assert app.button(key="players_save").disabled
    app.toggle(key="players_on").set_value(False).run()
    assert player_access(full) is None
