"""The story of albums in the browser: find one, play it, open a similar one, and start a queue from it."""

import pytest
from playwright.sync_api import expect

from musicsim.library import Library
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.browser.actions import expect_rows, player_plays, row_ids, rows, show_tab, switch, visit


@pytest.fixture
def split(home):
    """Split each of the three albums into two, and make two songs the movements of a work."""
    with Library.open(home / "library") as library:
        songs = library.songs()
        for song in songs:
            kind = song.artist.removeprefix("Artist ").capitalize()
            title = f"Sonata: {'I' * song.track}. Part" if kind == "Tones" and song.track < 3 else song.title
            library.edits.edit([song.id], {"album": f"{kind} {'AABB'[song.track - 1]}", "title": title})
        yield {song.album: [one.id for one in library.songs() if one.album == song.album] for song in library.songs()}
        library.edits.undo([song.id for song in songs])


def test_album_is_opened_played_and_continued(page, address, split):
    visit(page, address, "library")
    show_tab(page, "Albums")
    covers = page.locator("[class*='st-key-cover_all_'] button")
    expect(covers).to_have_count(6)
    image = covers.first.evaluate("button => getComputedStyle(button, '::before').backgroundImage")
    assert "/songs/" in image
    assert page.request.get(image.removeprefix('url("').removesuffix('")')).ok
    page.get_by_text("Artists", exact=True).click()
    expect(covers).to_have_count(3)
    page.get_by_role("button", name="Artist tones").click()
    expect(covers).to_have_count(2)
    page.get_by_role("button", name="Tones A").click()
    expect(page.get_by_role("heading", name="Tones A")).to_be_visible()
    expect(page.get_by_text("Sonata", exact=True)).to_be_visible()
    expect_rows(page, split["Tones A"])
    page.get_by_role("button", name="Play", exact=True).first.click()
    player_plays(page, split["Tones A"][0])
    similar = page.locator("[class*='st-key-cover_similar_'] button")
    expect(similar.first).to_have_text("Tones B")
    page.get_by_role("button", name="Playlist of similar albums").click()
    expect(page.get_by_role("heading", name="Playlists", exact=True)).to_be_visible()
    expect(rows(page)).to_have_count(6)
    assert row_ids(page)[:2] == split["Tones A"]
    switch(page, "library")
    similar.first.click()
    expect(page.get_by_role("heading", name="Tones B")).to_be_visible()
    page.get_by_role("button", name="More like this album").click()
    expect(page.get_by_role("heading", name="Listen", exact=True)).to_be_visible()
    player_plays(page, split["Tones B"][0])
    expect(page.get_by_test_id("song-row").first).to_have_attribute("data-song-id", str(split["Tones B"][1]))


def test_movements_are_kept_together_and_separated_again(page, address, home, split):
    first, second = split["Tones A"]
    other = split["Noise A"][0]
    with Library.open(home / "library") as library:
        library.add_playlists([("Evening", None, [second, other, first])], source=OWN_PLAYLISTS)
        saved = next(playlist.id for playlist in library.playlists() if playlist.name == "Evening")
    visit(page, address, "playlist", f"?playlist={saved}")
    expect_rows(page, [second, other, first])
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_text("Keep movements together").click()
    expect(page.get_by_text("Together now: “Sonata”. 0 songs added.")).to_be_visible()
    expect_rows(page, [first, second, other])
    page.get_by_role("button", name="Undo").click()
    expect_rows(page, [second, other, first])
    with Library.open(home / "library") as library:
        library.saved_playlists.delete(saved)
