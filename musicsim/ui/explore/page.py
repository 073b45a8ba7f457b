"""Explore: the map, the chosen song, and what is nearest to it."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.search.artists import find_similar_artists
from musicsim.explorer.search.query import Hit, find_similar
from musicsim.explorer.snapshot.map_colours import colours_offered
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import BESIDE, CHOSEN, COLOUR_BY, FOUND
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.components.cover import show_cover
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.components.listening import follow, play_songs
from musicsim.ui.components.song_finder import MatchKind, find_song, ids_of_match, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, song_list
from musicsim.ui.components.song_map import song_map
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.explore.selection import show_selection
from musicsim.ui.playlist.draft import PLAYLIST

MAP_KEY = "explore_map"
_N_ARTISTS = 5


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Explore", anchor=False)
    stop_without_songs(now)
    left, right = st.columns([5, 2], gap="medium")
    with left:
        song, hits = _map_column(now)
    with right, st.container(key="beside_map"):
        show_selection(now)
        _chosen_song(now, song, hits)


def _choose(now: Snapshot, song: Song) -> None:
    """Make a song the chosen one and play it."""
    CHOSEN.set(song.id)
    play_songs(now.library, [song], preview=True)


def _clicked(now: Snapshot, song_id: int) -> None:
    """A click on a point of a map plays its song."""
    for song in now.songs_by_id([song_id]):
        FOUND.set(FOUND.default())
        _choose(now, song)


def _encircled(now: Snapshot, ids: Int64Array) -> None:
    """A lasso marks the songs inside; around one alone it is a click."""
    if len(ids) == 1:
        _clicked(now, int(ids[0]))
    elif len(ids):
        FOUND.set(ids)


def _searched(now: Snapshot, kind: MatchKind, value: str) -> None:
    """A title chooses its song; an artist, an album and words mark all of theirs."""
    ids = ids_of_match(now, kind, value)
    FOUND.set(FOUND.default() if kind == "song" else ids)
    CHOSEN.set(next(iter(ids.tolist()), CHOSEN.get()))


def _map_column(now: Snapshot) -> tuple[Song | None, list[Hit]]:
    """The map, or two of them, under what searches and colours it; returns the chosen song and its neighbours."""
    models = {record.id: record.name for record in now.library.models.all()}
    whole = [record.id for record in now.library.models.all() if now.library.models.is_whole(record)]
    others = [model_id for model_id in whole if now.record is None or model_id != now.record.id]
    if BESIDE.get() not in others:
        BESIDE.set(None)
    by, find, second = st.columns([2, 4, 3], vertical_alignment="bottom")
    by.selectbox("Colour by", colours_offered(), key=COLOUR_BY.name)
    if others:
        second.selectbox(
            "Compare with model", others, key=BESIDE.name, format_func=models.__getitem__, placeholder="none",
            help="Shows the map of another model next to this one, with the same songs marked.",
        )  # fmt: skip
    with find:
        find_song(
            "Search", key="explore_find", search=partial(song_matches, now), on_pick=partial(_searched, now),
            is_labelled=False,
        )  # fmt: skip
    chosen = CHOSEN.get()
    song = next(iter(now.songs_by_id([chosen])), None) if chosen is not None else None
    hits = find_similar(now, song.id) if song is not None and now.rows_of([song.id])[0] >= 0 else []
    _maps(now, models, song, FOUND.get() if len(FOUND.get()) else [hit.song.id for hit in hits])
    st.caption(_facts(now, models))
    return song, hits


def _maps(now: Snapshot, models: dict[str, str], song: Song | None, marked: Sequence[int] | Int64Array) -> None:
    """The map under the model in use; on its left the one under another model, if one is chosen."""
    if BESIDE.get() is None:
        _draw_map(now, MAP_KEY, now, song, marked)
        return
    for column, seen in zip(st.columns(2), (snapshot(BESIDE.get()), now), strict=True):
        with column:
            model_id = seen.record.id if seen.record else ""
            st.markdown(f"**{plain(models[model_id])}**")
            _draw_map(seen, f"{MAP_KEY}_{model_id}", now, song, marked)


def _draw_map(of: Snapshot, key: str, now: Snapshot, song: Song | None, marked: Sequence[int] | Int64Array) -> None:
    """One map of the library, with the chosen song and what is marked."""
    song_map(
        of, key=key, colour_by=COLOUR_BY.get() or "genre", chosen=song.id if song else None, found=marked,
        height=None, on_pick=partial(_clicked, now), on_hear=partial(_heard, now),
        on_outline=partial(_encircled, now),
    )  # fmt: skip


def _heard(now: Snapshot, song_id: int) -> None:
    """A song under a resting pointer is played, and not chosen."""
    play_songs(now.library, now.songs_by_id([song_id]), preview=True)


def _facts(now: Snapshot, models: dict[str, str]) -> str:
    """What the map shows and does not show, in words."""
    n_folded = int((now.rows_of(now.representative_of) >= 0).sum())
    n_waiting = now.n_songs - now.n_indexed - n_folded
    alike = (
        f"similar according to the model “{plain(models[now.record.id])}”"
        if now.record and len(models) > 1
        else "similar in sound"
    )
    facts = [f"{now.n_indexed:,} songs; nearby songs are {alike}. Click a point to play it."]
    if BESIDE.get() is not None:
        facts += ["Rings are its nearest, on both maps."]
    if now.representative_of:
        facts += [f"{len(now.representative_of):,} duplicates hidden."]
    if n_waiting:
        facts += [f"{n_waiting:,} more are not on the map yet."]
    return " ".join(facts)


def _start_here(now: Snapshot) -> None:
    """Three steps for those who have not chosen a song yet."""
    st.subheader("Start here", anchor=False)
    st.markdown(
        "**1 · Choose a song.** Click a point on the map or search for a title: it plays, and the most similar songs "
        "appear here."
    )
    for song in now.songs_by_id(now.row_ids[:1]):
        st.button(
            f"Try “{plain(song.title)}”",
            key="explore_try",
            icon=":material/play_arrow:",
            on_click=_choose,
            args=(now, song),
        )
    st.markdown(
        "**2 · Follow what you like.** ≈ beside a song shows what sounds like it, + queues it, ? says why it is in the "
        "list."
    )
    if is_public():
        return
    st.markdown("**3 · Add your own music.** It is analysed on this machine and stays there.")
    st.page_link(PAGES["library"], label="Add a folder", icon=":material/create_new_folder:")


def _chosen_song(now: Snapshot, song: Song | None, hits: list[Hit]) -> None:
    """The chosen song, what can be done with it, and its neighbours."""
    if song is None:
        _start_here(now)
        return
    tempo = song.tempo and f"{song.tempo:.0f} beats/min"
    facts = [song.by, song.album, song.genre, song.year and str(song.year), song.key_words, tempo]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        show_cover(now.library, song)
        with st.container(width="stretch", gap=None):
            st.subheader(plain(song.title), anchor=False)
            st.caption(" · ".join(plain(f) for f in [*facts, clock(song.duration_s)] if f))
    with st.container(horizontal=True):
        st.button("Play", icon=":material/play_arrow:", on_click=_choose, args=(now, song))
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
        st.caption("No other songs yet." if now.n_songs == 1 else "This song has not been compared yet.")

    def act(action: Action) -> None:
        """Play or queue a neighbour, make it the chosen song, or ask why it is one."""
        if action.kind == "why":
            ask_why(action.song_id)
        follow(action, now, [hit.song for hit in hits])

    song_list(hit_rows(hits, can_explain=True), key="nearest", on_action=act)
    show_why(now, song.id)
    if hits:
        _similar_artists(now, song)


def _similar_artists(now: Snapshot, song: Song) -> None:
    """Other artists near the chosen song: a button plays the songs of theirs that are nearest to it."""
    shown = st.expander("Similar artists", icon=":material/artist:", key="explore_artists", on_change="rerun")
    if not shown.open:
        return
    with shown:
        artists = find_similar_artists(now, song.id, _N_ARTISTS)
        for place, artist in enumerate(artists):
            songs = [hit.song for hit in artist.entries]
            titles = " · ".join(plain(song.title) for song in songs)
            st.button(
                f"**{plain(artist.name)}**: {titles}", icon=":material/play_arrow:", type="tertiary",
                key=f"similar_artist_{place}", on_click=play_songs, args=(now.library, songs),
                kwargs={"preview": True}, help="Plays these songs, the nearest ones by this artist.",
            )  # fmt: skip
        if not artists:
            st.caption("No other artists are known here.")


if __name__ == "__main__":
    draw()
