"""Explore: the map, the chosen song, and what is nearest to it."""

import streamlit as st

from musicsim.explorer.query import find_similar
from musicsim.explorer.snapshot import Snapshot
from musicsim.ui.empty import stop_without_songs
from musicsim.ui.frame import PAGES
from musicsim.ui.listening import follow, play_songs
from musicsim.ui.song_list import Action, clock, hit_rows, song_list
from musicsim.ui.song_map import COLOUR_BY as COLOURS
from musicsim.ui.song_map import map_figure
from musicsim.ui.state import BESIDE, CHOSEN, COLOUR_BY, EXAMPLE, FOUND, PLAYLIST, snapshot
from musicsim.ui.text import plain
from musicsim.ui.why_view import ask_why, show_why

MAP_KEY = "explore_map"
FIND_KEY = "explore_find"

now = snapshot()
st.title("Explore", anchor=False)
stop_without_songs(now)


def choose(song_id: int) -> None:
    """Make a song the chosen one and play it."""
    CHOSEN.set(song_id)
    play_songs(now.library, [now.by_id[song_id]], preview=True)


def clicked(key: str) -> None:
    """A click on a map plays the song; a lasso marks what it holds."""
    points = st.session_state[key].selection.points
    ids = [p["customdata"] for p in points if p.get("customdata") in now.by_id]
    if len(ids) == 1:
        FOUND.set([])
        choose(ids[0])
    elif ids:
        FOUND.set(list(dict.fromkeys(ids)))


def searched() -> None:
    """A title chooses its song; an artist marks all of theirs."""
    entry = st.session_state[FIND_KEY]
    kind, value = entry or ("", None)
    FOUND.set([s.id for s in now.songs if s.artist == value] if kind == "artist" else [])
    if kind == "song":
        CHOSEN.set(value)
    elif FOUND.get():
        CHOSEN.set(FOUND.get()[0])


def spell(entry: tuple[str, object]) -> str:
    """An entry of the search box in words."""
    kind, value = entry
    return f"{value} (artist)" if kind == "artist" else now.by_id[value].label


def draw_map(of: Snapshot, key: str, marked: list[int], height: int) -> None:
    """One map of the library, with the chosen song and what is marked."""
    st.plotly_chart(
        map_figure(of, COLOUR_BY.get() or "genre", chosen=chosen, found=marked, height=height),
        key=key,
        on_select=lambda: clicked(key),
        selection_mode=("points", "lasso"),
        config={"scrollZoom": True, "displaylogo": False, "modeBarButtonsToRemove": ["select2d", "toImage"]},
    )


left, right = st.columns([9, 5], gap="medium")
with left:
    models = {record.id: record.name for record in now.library.models.all()}
    others = [model_id for model_id in models if now.record is None or model_id != now.record.id]
    if BESIDE.get() not in others:
        BESIDE.set(None)
    by, find = st.columns([4, 3], vertical_alignment="bottom")
    by.pills("Colour by", COLOURS, key=COLOUR_BY.name)
    artists = sorted({song.artist for song in now.songs if song.artist})
    entries = [("artist", artist) for artist in artists] + [("song", song.id) for song in now.songs]
    find.selectbox(
        "Search", entries, index=None, key=FIND_KEY, on_change=searched, format_func=spell,
        placeholder="Search a title or an artist", label_visibility="collapsed",
    )  # fmt: skip
    chosen = CHOSEN.get() if CHOSEN.get() in now.by_id else None
    hits = find_similar(now, chosen) if chosen in now.row_of else []
    marked = FOUND.get() or [hit.song.id for hit in hits]
    if BESIDE.get() is None:
        draw_map(now, MAP_KEY, marked, 600)
    else:
        for column, seen in zip(st.columns(2), (snapshot(BESIDE.get()), now), strict=True):
            with column:
                st.markdown(f"**{plain(models[seen.record.id])}**")
                draw_map(seen, f"{MAP_KEY}_{seen.record.id}", marked, 480)
    n_waiting = sum(song.id not in now.row_of for song in now.songs)
    alike = f"alike by “{plain(models[now.record.id])}”" if len(models) > 1 else "alike in sound"
    facts = [f"{len(now.indexed):,} songs; close together means {alike}. Click a point to play it."]
    if BESIDE.get() is not None:
        facts += ["Rings are its nearest, on both maps."]
    facts += [f"{len(now.same_as):,} copies are folded into others."] if now.same_as else []
    facts += [f"{n_waiting:,} more are waiting for their place."] if n_waiting else []
    about, second = st.columns([7, 4], gap="large") if others else (st.container(), None)
    about.caption(" ".join(facts))
    if second is not None:
        second.selectbox(
            "Beside it", others, key=BESIDE.name, format_func=models.__getitem__, placeholder="No other map",
            help="The map of another model beside this one, with the same songs marked.",
        )  # fmt: skip

with right:
    if len(FOUND.get()) > 1:
        songs = [now.by_id[i] for i in FOUND.get() if i in now.by_id]
        st.subheader(f"{len(songs)} songs marked", anchor=False)
        st.button("Play them", icon=":material/play_arrow:", on_click=play_songs, args=(now.library, songs))
    if chosen is None:
        st.subheader("Nothing chosen yet", anchor=False)
        st.write("Click a point on the map, or search for a title. The songs nearest to it will stand here.")
        st.stop()
    song = now.by_id[chosen]
    st.subheader(plain(song.title), anchor=False)
    facts = [song.by, song.album, song.genre, song.year and str(song.year)]
    st.caption(" · ".join(plain(f) for f in [*facts, clock(song.duration_s)] if f))
    with st.container(horizontal=True):
        st.button("Play", icon=":material/play_arrow:", on_click=choose, args=(song.id,))
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
        st.caption("No other songs yet." if len(now.songs) == 1 else "This song has not been compared yet.")

    def act(action: Action) -> None:
        """Play or queue a neighbour, make it the chosen song, or ask why it is one."""
        if action.kind == "why":
            ask_why(action.song_id)
        follow(action, now, [hit.song for hit in hits])

    song_list(hit_rows(hits, can_explain=True), key="nearest", on_action=act)
    show_why(now, chosen)
