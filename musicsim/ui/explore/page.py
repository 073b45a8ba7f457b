"""Explore: the map, the chosen song, and what is nearest to it."""

from functools import partial

import numpy as np
import numpy.typing as npt
import streamlit as st

from musicsim.explorer.search.query import Hit, find_similar
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.state import BESIDE, CHOSEN, COLOUR_BY, EXAMPLE, FOUND, Key, snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.components.listening import follow, play_songs
from musicsim.ui.components.map_chart import map_chart
from musicsim.ui.components.song_finder import find_song, song_matches
from musicsim.ui.components.song_list import Action, clock, hit_rows, song_list
from musicsim.ui.components.song_map import COLOUR_BY as COLOURS
from musicsim.ui.components.song_map import MAX_MARKED
from musicsim.ui.components.why_view import ask_why, show_why
from musicsim.ui.playlist.draft import PLAYLIST

__all__ = ["draw"]

MAP_KEY = "explore_map"
MAX_PLAYED = 500  # songs that go into the player's queue at once
N_FOUND: Key[int] = Key(
    "n_found", int, "songs that a search or a lasso found, those without a ring among them"
)


def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Explore", anchor=False)
    stop_without_songs(now)
    left, right = st.columns([9, 5], gap="medium")
    with left:
        song, hits = _map_column(now)
    with right:
        _marked_songs(now)
        _chosen_song(now, song, hits)


def _choose(now: Snapshot, song: Song) -> None:
    """Make a song the chosen one and play it."""
    CHOSEN.set(song.id)
    play_songs(now.library, [song], preview=True)


def _mark(ids: npt.NDArray[np.int64]) -> None:
    """Mark songs; where they are very many, the first of them."""
    FOUND.set(ids[:MAX_MARKED].tolist())
    N_FOUND.set(len(ids))


def _clicked(now: Snapshot, song_id: int) -> None:
    """A click on a point of a map plays its song."""
    for song in now.songs_by_id([song_id]):
        FOUND.set([])
        _choose(now, song)


def _encircled(now: Snapshot, ids: npt.NDArray[np.int64]) -> None:
    """A lasso marks the songs inside; around one alone it is a click."""
    if len(ids) == 1:
        _clicked(now, int(ids[0]))
    elif len(ids):
        _mark(ids)


def _searched(now: Snapshot, kind: str, value: str) -> None:
    """A title chooses its song; an artist marks all of theirs."""
    if kind == "song":
        FOUND.set([])
        CHOSEN.set(next((song.id for song in now.songs_by_id([int(value)])), CHOSEN.get()))
    else:
        _mark(now.row_ids[now.songs_of_artist(value)])
        CHOSEN.set(next(iter(FOUND.get()), CHOSEN.get()))


def _map_column(now: Snapshot) -> tuple[Song | None, list[Hit]]:
    """The map, or two of them, under what searches and colours it; returns the chosen song and its neighbours."""
    models = {record.id: record.name for record in now.library.models.all()}
    whole = [record.id for record in now.library.models.all() if now.library.models.is_whole(record)]
    others = [model_id for model_id in whole if now.record is None or model_id != now.record.id]
    if BESIDE.get() not in others:
        BESIDE.set(None)
    by, find = st.columns([4, 3], vertical_alignment="bottom")
    by.pills("Colour by", COLOURS, key=COLOUR_BY.name, wrap=True)
    with find:
        find_song(
            "Search", key="explore_find", search=partial(song_matches, now), on_pick=partial(_searched, now),
            is_labelled=False,
        )  # fmt: skip
    chosen = CHOSEN.get()
    song = next(iter(now.songs_by_id([chosen])), None) if chosen is not None else None
    hits = find_similar(now, song.id) if song is not None and now.rows_of([song.id])[0] >= 0 else []
    _maps(now, models, song, FOUND.get() or [hit.song.id for hit in hits])
    about, second = st.columns([7, 4], gap="large") if others else (st.container(), None)
    about.caption(_facts(now, models))
    if second is not None:
        second.selectbox(
            "Compare with model", others, key=BESIDE.name, format_func=models.__getitem__, placeholder="none",
            help="Shows the map of another model next to this one, with the same songs marked.",
        )  # fmt: skip
    return song, hits


def _maps(now: Snapshot, models: dict[str, str], song: Song | None, marked: list[int]) -> None:
    """The map under the model in use; on its left the one under another model, if one is chosen."""
    if BESIDE.get() is None:
        _draw_map(now, MAP_KEY, now, song, marked, 600)
        return
    for column, seen in zip(st.columns(2), (snapshot(BESIDE.get()), now), strict=True):
        with column:
            model_id = seen.record.id if seen.record else ""
            st.markdown(f"**{plain(models[model_id])}**")
            _draw_map(seen, f"{MAP_KEY}_{model_id}", now, song, marked, 480)


def _draw_map(
    of: Snapshot, key: str, now: Snapshot, song: Song | None, marked: list[int], height: int
) -> None:
    """One map of the library, with the chosen song and what is marked."""
    map_chart(
        of, key=key, colour_by=COLOUR_BY.get() or "genre", chosen=song.id if song else None, found=marked,
        height=height, on_pick=partial(_clicked, now), on_outline=partial(_encircled, now),
    )  # fmt: skip


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


def _marked_songs(now: Snapshot) -> None:
    """How many songs are marked, and a button that plays them."""
    if len(FOUND.get()) <= 1:
        return
    songs = now.songs_by_id(FOUND.get()[:MAX_PLAYED])
    n_found = max(N_FOUND.get(), len(songs))
    st.subheader(f"{n_found:,} songs marked", anchor=False)
    if n_found > len(FOUND.get()):
        st.caption(f"{len(FOUND.get()):,} shown with a ring.")
    st.button(
        "Play them" if len(songs) == n_found else f"Play {len(songs)} of them", icon=":material/play_arrow:",
        on_click=play_songs, args=(now.library, songs),
    )  # fmt: skip


def _chosen_song(now: Snapshot, song: Song | None, hits: list[Hit]) -> None:
    """The chosen song, what can be done with it, and its neighbours."""
    if song is None:
        st.subheader("Nothing chosen yet", anchor=False)
        st.write("Click a point on the map or search for a title. The most similar songs will appear here.")
        return
    st.subheader(plain(song.title), anchor=False)
    tempo = song.tempo and f"{song.tempo:.0f} beats/min"
    facts = [song.by, song.album, song.genre, song.year and str(song.year), song.key_words, tempo]
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
    st.markdown(
        "**Nearest**", help="Songs start at their most typical 30 seconds; ⏮ plays from the beginning."
    )
    if not hits:
        st.caption("No other songs yet." if now.n_songs == 1 else "This song has not been compared yet.")

    def act(action: Action) -> None:
        """Play or queue a neighbour, make it the chosen song, or ask why it is one."""
        if action.kind == "why":
            ask_why(action.song_id)
        follow(action, now, [hit.song for hit in hits])

    song_list(hit_rows(hits, can_explain=True), key="nearest", on_action=act)
    show_why(now, song.id)


if __name__ == "__main__":
    draw()
