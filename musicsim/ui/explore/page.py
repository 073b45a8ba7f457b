"""Explore: the map, the chosen song, and the songs nearest to it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.search.query import Hit, find_similar, find_similar_artists
from musicsim.explorer.snapshot.map_columns import colours_offered
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import CHOSEN, COLOR_BY, MARKED, SECOND_MODEL
from musicsim.ui.base.text import plain
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.components.listening import follow, play_preview, play_songs
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, show_cover, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.explore.selection import show_selection
from musicsim.ui.playlist.draft import PLAYLIST

MAP_KEY = "explore_map"
_N_ARTISTS = 5


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Explore", anchor=False)
    stop_without_songs(snapshot)
    left, right = st.columns([5, 2], gap="medium")
    with left:
        song, hits = _show_map_column(snapshot)
    with right, st.container(key="beside_map"):
        show_selection(snapshot)
        if song is None:
            _show_first_steps(snapshot)
        else:
            _show_song(snapshot, song, hits)


def _choose(snapshot: Snapshot, song: Song) -> None:
    CHOSEN.set(song.id)
    play_songs(snapshot.library, [song], preview=True)


def _click(snapshot: Snapshot, song_id: int) -> None:
    """Choose and play the song of a point."""
    for song in snapshot.songs_by_id([song_id]):
        MARKED.set(MARKED.default())
        _choose(snapshot, song)


def _lasso(snapshot: Snapshot, ids: Int64Array) -> None:
    """Mark the songs inside a lasso; a lasso around one song counts as a click."""
    if len(ids) == 1:
        _click(snapshot, int(ids[0]))
    elif len(ids):
        MARKED.set(ids)


def _pick(snapshot: Snapshot, kind: MatchKind, value: str) -> None:
    """Choose the song of a title; for an artist, an album and words, mark all their songs."""
    ids = ids_of_match(snapshot, kind, value)
    MARKED.set(MARKED.default() if kind == "song" else ids)
    CHOSEN.set(next(iter(ids.tolist()), CHOSEN.get()))


def _show_map_column(snapshot: Snapshot) -> tuple[Song | None, list[Hit]]:
    """Show one or two maps with a search box and settings; return the chosen song and its neighbors."""
    records, own = snapshot.library.models.all(), snapshot.record
    names = {record.id: record.name for record in records}
    whole = [record.id for record in records if snapshot.library.models.is_whole(record)]
    others = [model_id for model_id in whole if own is None or model_id != own.id]
    if SECOND_MODEL.get() not in others:
        SECOND_MODEL.set(None)
    by, find, second = st.columns([2, 4, 3], vertical_alignment="bottom")
    by.selectbox("Color by", colours_offered(), key=COLOR_BY.name)
    if others:
        second.selectbox(
            "Compare with model", others, key=SECOND_MODEL.name, format_func=names.__getitem__, placeholder="none",
            help="Shows the map of another model next to this one, with the same songs marked.",
        )  # fmt: skip
    with find:
        find_song(
            "Search", key="explore_find", search=partial(song_matches, snapshot), on_pick=partial(_pick, snapshot),
            is_labelled=False,
        )  # fmt: skip
    chosen = CHOSEN.get()
    song = next(iter(snapshot.songs_by_id([chosen])), None) if chosen is not None else None
    hits = find_similar(snapshot, song.id) if song is not None and snapshot.rows_of([song.id])[0] >= 0 else []
    marked = MARKED.get() if len(MARKED.get()) else [hit.song.id for hit in hits]
    if SECOND_MODEL.get() is None:
        _show_map(snapshot, MAP_KEY, snapshot, song, marked)
    else:
        for column, one in zip(st.columns(2), (openers.snapshot(SECOND_MODEL.get()), snapshot), strict=True):
            with column:
                model_id = one.record.id if one.record else ""
                st.markdown(f"**{plain(names[model_id])}**")
                _show_map(one, f"{MAP_KEY}_{model_id}", snapshot, song, marked)
    st.caption(_facts(snapshot, names))
    return song, hits


def _show_map(
    drawn: Snapshot, key: str, snapshot: Snapshot, song: Song | None, marked: Sequence[int] | Int64Array
) -> None:
    """Show the map of the snapshot `drawn`; clicks act on the snapshot of the page."""
    song_map(
        drawn, key=key, color_by=COLOR_BY.get() or "genre", chosen=song.id if song else None, marked=marked,
        height=None, on_pick=partial(_click, snapshot), on_hear=partial(play_preview, snapshot),
        on_outline=partial(_lasso, snapshot),
    )  # fmt: skip


def _facts(snapshot: Snapshot, names: dict[str, str]) -> str:
    n_hidden = int((snapshot.rows_of(snapshot.representative_of) >= 0).sum())
    n_waiting = snapshot.n_songs - snapshot.n_indexed - n_hidden
    if snapshot.record and len(names) > 1:
        alike = f"similar according to the model “{plain(names[snapshot.record.id])}”"
    else:
        alike = "similar in sound"
    facts = [f"{snapshot.n_indexed:,} songs; nearby songs are {alike}. Click a point to play it."]
    if SECOND_MODEL.get() is not None:
        facts += ["Rings mark the nearest songs, on both maps."]
    if snapshot.representative_of:
        facts += [f"{len(snapshot.representative_of):,} duplicates hidden."]
    if n_waiting:
        facts += [f"{n_waiting:,} more are not on the map yet."]
    return " ".join(facts)


def _show_first_steps(snapshot: Snapshot) -> None:
    st.subheader("Start here", anchor=False)
    st.markdown(
        "**1 · Choose a song.** Click a point on the map or search for a title: it plays, and the most similar songs "
        "appear here."
    )
    for song in snapshot.songs_by_id(snapshot.row_ids[:1]):
        st.button(
            f"Try “{plain(song.title)}”", key="explore_try", icon=":material/play_arrow:", on_click=_choose,
            args=(snapshot, song),
        )  # fmt: skip
    st.markdown(
        "**2 · Follow what you like.** Next to a song, ≈ shows similar songs, + queues it, and ? explains why it is in "
        "the list."
    )
    if not is_public():
        st.markdown("**3 · Add your own music.** It is analyzed on this machine and stays there.")
        st.page_link(PAGES["library"], label="Add a folder", icon=":material/create_new_folder:")


def _show_song(snapshot: Snapshot, song: Song, hits: list[Hit]) -> None:
    """Show a song, actions on it, and its neighbors."""
    tempo = song.tempo and f"{song.tempo:.0f} beats/min"
    facts = [song.by, song.album, song.genre, song.year and str(song.year), song.key_words, tempo]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        show_cover(snapshot.library, song)
        with st.container(width="stretch", gap=None):
            st.subheader(plain(song.title), anchor=False)
            st.caption(" · ".join(plain(f) for f in [*facts, clock(song.duration_s)] if f))
    with st.container(horizontal=True):
        st.button("Play", icon=":material/play_arrow:", on_click=_choose, args=(snapshot, song))
        if st.button("More like this", icon=":material/search:"):
            EXAMPLE.set(None)
            st.switch_page(PAGES["search"])
        if st.button("Playlist from here", icon=":material/queue_music:"):
            PLAYLIST.set(None)
            st.switch_page(PAGES["playlist"])
    if song.notes:
        st.caption(f":material/info: {plain(song.notes)}")
    st.markdown("**Nearest**", help="Songs start at their most typical 30 seconds; ⏮ plays from the beginning.")
    if not hits:
        st.caption("No other songs yet." if snapshot.n_songs == 1 else "This song has not been compared yet.")

    def act(action: Action) -> None:
        if action.kind == "why":
            ask_why(action.song_id)
        follow(action, snapshot, [hit.song for hit in hits])

    song_list(hit_rows(hits, can_explain=True), key="nearest", on_action=act)
    show_why(snapshot, song.id)
    if hits:
        _show_similar_artists(snapshot, song)


def _show_similar_artists(snapshot: Snapshot, song: Song) -> None:
    """Show artists similar to a song, each with a button that plays their songs nearest to it."""
    expander = st.expander("Similar artists", icon=":material/artist:", key="explore_artists", on_change="rerun")
    if not expander.open:
        return
    with expander:
        artists = find_similar_artists(snapshot, song.id, _N_ARTISTS)
        for place, artist in enumerate(artists):
            songs = [hit.song for hit in artist.entries]
            titles = " · ".join(plain(song.title) for song in songs)
            st.button(
                f"**{plain(artist.name)}**: {titles}", icon=":material/play_arrow:", type="tertiary",
                key=f"similar_artist_{place}", on_click=play_songs, args=(snapshot.library, songs),
                kwargs={"preview": True}, help="Play this artist's songs closest to the selected one.",
            )  # fmt: skip
        if not artists:
            st.caption("This library does not have other artists.")


if __name__ == "__main__":
    draw()
