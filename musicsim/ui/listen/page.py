"""Listen: the map, one box that starts the music, the song that is playing, and the queue.

The map and the queue are one fragment, so that thumbs and the player's songs do not rerun the frame.
"""

from functools import partial

import streamlit as st

from musicsim._arrays import Float32Array
from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.queue import QueueRequest, make_queue_request
from musicsim.explorer.search.matches import song_matches
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import suggest_words
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.frame import PAGES, asset
from musicsim.ui.base.reloads import save_session
from musicsim.ui.base.text import plain
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.components.song_finder import find_song
from musicsim.ui.components.why_view import show_why
from musicsim.ui.listen.add_sound import add_sound
from musicsim.ui.listen.card import card_actions, show_card
from musicsim.ui.listen.conditions import IS_REMOVED, fill_filters, request_of, show_chips, show_conditions
from musicsim.ui.listen.feedback import feedback_bar, thumbs_of
from musicsim.ui.listen.map_column import fit_second_model, show_maps
from musicsim.ui.listen.more import fill_more
from musicsim.ui.listen.queue_view import (
    current_song,
    follow_player,
    play_if_asked,
    queue_actions,
    queue_of,
    show_queue,
)
from musicsim.ui.listen.seed import Seed, pick_match, seed_of, start_song
from musicsim.ui.listen.selection import show_selection
from musicsim.ui.listen.state import LISTEN, state_of

# Phones show either the queue or the map; other screens hide these tabs. Styles switch between the two without a rerun.
_TABS = """<fieldset class="listen-tabs"><label><input type="radio" name="listen-tab" checked>Queue</label>
<label><input type="radio" name="listen-tab" id="listen-map">Map</label></fieldset>"""


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.html(f"<style>{asset('listen.css')}</style>")
    with st.container(key="listen_title"):
        st.title("Listen", anchor=False)
    stop_without_songs(snapshot)
    fit_second_model(snapshot)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="listen_box"):
        find_song(
            "Search", key="listen_find", search=partial(song_matches, snapshot), is_labelled=False,
            on_pick=partial(pick_match, snapshot), placeholder="A song, an artist, or words: slow piano",
            suggest=partial(suggest_words, snapshot),
        )  # fmt: skip
        add_sound()
        try:
            seed = seed_of(snapshot)
        except MusicsimError as error:
            st.error(plain(error), icon=":material/error:")
            seed = None
        filters = None
        if seed is not None:
            state_of(seed.name)
            show_chips(snapshot)
            # Closing it must not rerun this page, because the click that closes it may open another page.
            filters = st.popover("Filters", key="search_filters")
        more = st.popover("More", key="search_more")
    st.html(_TABS)
    _show_page(snapshot, seed)
    if filters is not None:  # last, because nobody needs them before the queue
        fill_filters(snapshot, filters)
    fill_more(snapshot, more, seed)


@st.fragment
def _show_page(snapshot: Snapshot, seed: Seed | None) -> None:
    if IS_REMOVED.get():  # the popovers also show conditions, but are outside this fragment
        IS_REMOVED.set(False)
        st.rerun()
    follow_player()  # in this fragment, because a rerun of the whole page would interrupt a click's callback
    with st.container(key="listen_columns"):
        left, right = st.columns([3, 2], gap="medium")
    with right, st.container(key="beside_map"):
        chosen, near, star = _show_music(snapshot, seed)
    with left:
        show_maps(snapshot, chosen, near, star)
    save_session()


def _show_music(snapshot: Snapshot, seed: Seed | None) -> tuple[int | None, list[int], Float32Array | None]:
    """Show the current song and the queue; return the song's id, the nearest songs' ids, and an upload's place."""
    show_selection(snapshot)
    if seed is None:
        if EXAMPLE.get() is None:  # an upload without a seed could not be decoded
            _show_first_steps(snapshot)
        return None, [], None
    try:
        request = _request(snapshot, seed)
        items = queue_of(snapshot, seed, request)
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return None, [], None
    current = current_song(seed, items)
    item = next((item for item in items if item.song.id == current), None)
    show_card(snapshot, seed, items, item)
    with st.container(horizontal=True, gap="small", key="listen_actions"):
        card_actions(seed, items, item, can_explain=request.query is not None)
        queue_actions(snapshot, seed, items, current)
    show_conditions(snapshot, LISTEN.get())
    feedback_bar(snapshot, seed.name, seed.song_id)
    show_queue(snapshot, seed, items, current, request)
    if request.query is not None:
        show_why(snapshot, request.query, seed.name, request.search.by)
    play_if_asked(snapshot, seed, items)
    near = [item.song.id for item in items if item.similarity is not None]
    return current, near, None if seed.upload is None else seed.upload.place


def _request(snapshot: Snapshot, seed: Seed) -> QueueRequest:
    state = state_of(seed.name)
    return make_queue_request(
        snapshot, seed.example, request_of(snapshot, state), feedback=opinions(snapshot.library).feedback(),
        thumbs=thumbs_of(snapshot, seed.name, seed.song_id), target=state.target, calmer=state.calmer,
        surprise=state.surprise, pins=state.pins, opening=state.opening, heard=state.heard, removed=state.removed,
        length=state.length, seed=state.number,
    )  # fmt: skip


def _show_first_steps(snapshot: Snapshot) -> None:
    st.header("Start here", anchor=False)
    st.markdown("Choose a song on the map or in the box: it plays, and similar songs follow.")
    for song in snapshot.songs_by_id(snapshot.row_ids[:1]):
        st.button(
            f"Try “{plain(song.title)}”", key="explore_try", icon=":material/play_arrow:", type="primary",
            on_click=partial(start_song, snapshot, song.id),
        )  # fmt: skip
    st.caption("Or drop a sound file anywhere on this page.")
    if not is_public():
        st.page_link(PAGES["library"], label="Add your own music", icon=":material/create_new_folder:")


if __name__ == "__main__":
    draw()
