"""Tests of the group Live and of the form for rules, without a browser."""

import pytest

from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore
from musicsim.extensions.rules.tables import rules
from tests.pages.actions import open_page, play_buttons, said


@pytest.fixture
def tab(full):
    return open_page("playlist", "Rules")


def widget(widgets, prefix, place=0):
    return [one for one in widgets if (one.key or "").startswith(prefix)][place]


def test_untouched_form_shows_no_songs(tab):
    assert "Fill in a condition" in said(tab)
    assert "meet the conditions" not in said(tab)
    assert not play_buttons(tab)
    widget(tab.selectbox, "rules_order_").set_value("year").run()
    assert "12 songs meet the conditions" in said(tab)


def test_count_follows_form(tab, full):
    tempos = sorted(song.tempo for song in full.songs() if song.tempo)
    widget(tab.text_input, "rules_text_").set_value(f"{tempos[-1]:.3f}").run()
    widget(tab.selectbox, "rules_comparison_").set_value("<").run()
    n = sum(song.tempo < float(f"{tempos[-1]:.3f}") for song in full.songs() if song.tempo)
    assert f"{n} songs meet the conditions" in said(tab)
    widget(tab.text_input, "rules_text_").set_value("fast").run()
    assert "must be followed by a number" in said(tab)
    widget(tab.selectbox, "rules_field_").set_value("artist").run()
    assert "Fill in a condition" in said(tab)
    artist = full.songs()[0].artist
    widget(tab.multiselect, "rules_names_").set_value([artist]).run()
    assert "4 songs meet the conditions" in said(tab)
    tab.button(key="rules_add_group").click().run()
    widget(tab.selectbox, "rules_field_", 1).set_value("words").run()
    widget(tab.text_input, "rules_text_").set_value("xyzzyq").run()
    assert "nothing matches" in said(tab)
    widget(tab.button, "rules_drop_", 1).click().run()
    widget(tab.number_input, "rules_songs_").set_value(3).run()
    assert "4 songs meet the conditions; 3 songs within the limits" in said(tab)


def test_rule_is_opened_saved_deleted_and_restored(full):
    store = RuleStore(full)
    loved = RuleRequest(where=("thumb:up", "plays:<3 or year:>1900")).rule()
    store.save("Loved", loved)
    page = open_page("playlist")
    assert "0 songs · thumb:up" in said(page)
    assert play_buttons(page)["No song meets the conditions."]["disabled"]
    page.button(key="rule_0_open").click().run()
    assert "0 songs meet the conditions" in said(page)
    assert play_buttons(page)["Play"]["help"] == "No song meets the conditions."
    widget(page.text_input, "rules_name_").set_value("Also").run()
    page.button(key="rules_save_it").click().run()
    assert store.get("Also").rule == loved
    page.button(key="playlist_back").click().run()
    page.menu_button(key="rule_0_menu").click("Delete").run()
    assert [saved.name for saved in store.all()] == ["Loved"]
    assert "“Also” was deleted" in said(page)
    page.button(key="rules_undo").click().run()
    assert store.get("Also").rule == loved
    assert "“Also” was deleted" not in said(page)


def test_unreadable_rule_can_be_deleted(full):
    store = RuleStore(full)
    store.save("Loved", RuleRequest(where=("thumb:up",)).rule())
    with full.write() as connection:
        connection.execute(rules.update().values(document={"groups": 7}))
    page = open_page("playlist")
    assert "the rule “Loved” cannot be read" in said(page)
    page.button(key="rule_0_open").click().run()
    assert not page.exception
    page.menu_button(key="rule_0_menu").click("Delete").run()
    assert store.all() == []


def test_rule_is_opened_as_playlist(tab, full):
    widget(tab.number_input, "rules_songs_").set_value(5).run()
    tab.button(key="rules_playlist").click().run()
    assert not tab.exception
    assert "5 songs · " in "".join(header.value for header in tab.header)
