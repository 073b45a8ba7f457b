"""Playlist: a walk over what songs have in common; every step says why."""

import secrets
from pathlib import Path

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.walk import ARTIST_SPACING, SURPRISE
from musicsim.library import SavedPlaylist
from musicsim.library.exporters import FORMATS
from musicsim.ui.empty import stop_without_songs
from musicsim.ui.listening import play_songs
from musicsim.ui.song_list import Action, clock, row_of, song_list
from musicsim.ui.song_map import map_figure
from musicsim.ui.state import CHOSEN, PLAYLIST, PlaylistDraft, snapshot, walk
from musicsim.ui.text import plain

now = snapshot()
st.title("Playlist", anchor=False)
stop_without_songs(now)
walker = walk(now)
SAVED = "saved"  # the source of lists that were saved here
MIME = {"m3u8": "audio/x-mpegurl", "xspf": "application/xspf+xml", "jspf": "application/json"}


def draw(first: int | None, length: int, **how: float) -> None:
    """Draw a new list with a new seed."""
    seed = secrets.randbelow(2**31)
    PLAYLIST.set(PlaylistDraft.of(walker.draw(length, first=first, random_state=seed, **how), seed))


def open_saved(playlist: SavedPlaylist) -> None:
    """Take a saved list into work; its steps get their likeliest reasons."""
    PLAYLIST.set(PlaylistDraft(list(playlist.song_ids)))


def redraw(draft: PlaylistDraft, index: int) -> None:
    """Draw again what comes after a song."""
    seed, kept = secrets.randbelow(2**31), draft.song_ids[: index + 1]
    how = {name: st.session_state[f"playlist_{name}"] for name in ("spacing", "surprise")}
    drawn = walker.draw(len(draft.song_ids), keep=kept, random_state=seed, **how)
    fresh = PlaylistDraft.of(drawn, seed)
    PLAYLIST.set(PlaylistDraft(fresh.song_ids, fresh.taken | draft.taken, fresh.note, seed))


@st.dialog("Why this step?")
def why(song_id: int, next_id: int) -> None:
    """All that two songs have in common, with how likely each led from one to the other."""
    here, there = now.by_id[song_id], now.by_id[next_id]
    st.markdown(f"From **{plain(here.title)}** to **{plain(there.title)}**")
    for edge in walker.reasons(song_id, next_id):
        st.progress(edge.probability, text=f"{plain(edge.reason)}: {edge.probability:.0%}")


def act(action: Action) -> None:
    """Follow what a row asks for."""
    draft = PLAYLIST.get()
    ids = draft.song_ids
    if action.kind == "play":
        play_songs(now.library, [now.by_id[i] for i in ids], action.index)
    elif action.kind == "move":
        ids.insert(action.to, ids.pop(action.index))
    elif action.kind == "drop":
        ids.pop(action.index)
    elif action.kind == "redraw":
        redraw(draft, action.index)
    elif action.kind == "why":
        st.session_state["playlist_why"] = (ids[action.index - 1], ids[action.index])


settings, listing = st.columns([1, 2], gap="large")
with settings:
    ids = [song.id for song in now.indexed]
    first = st.selectbox(
        "First song", ids, index=now.row_of.get(CHOSEN.get()),
        format_func=lambda i: now.by_id[i].label, placeholder="Any song", key="playlist_first",
    )  # fmt: skip
    most = min(200, len(ids))
    length = st.number_input("Songs", 1, most, min(12, most), key="playlist_length")
    spacing = st.number_input(
        "Songs between two of one artist", 0, 50, ARTIST_SPACING, key="playlist_spacing",
        help="Fewer where the collection has fewer artists.",
    )  # fmt: skip
    surprise = st.slider(
        "Smooth to surprising", 0.0, 1.0, SURPRISE, 0.05, key="playlist_surprise",
        help="How freely a step may go anywhere: 1 is as often as in the playlists it was learned from.",
    )  # fmt: skip
    st.button(
        "Draw a playlist", icon=":material/casino:", type="primary", width="stretch",
        on_click=draw, args=(first, length), kwargs={"spacing": spacing, "surprise": surprise},
    )  # fmt: skip
    st.caption(
        f"What leads from song to song was learned from {walker.n_playlists:,} playlists of this library."
        if walker.n_playlists
        else "This library has no playlists to learn from yet: sound leads, then artists, tags and years."
    )

    saved = {playlist.id: playlist for playlist in now.library.playlists(source=SAVED)}
    if saved:
        with st.popover("Saved playlists", icon=":material/folder_open:", width="stretch"):
            wanted = st.selectbox(
                "Saved playlist", list(saved), key="playlist_saved", label_visibility="collapsed",
                format_func=lambda i: f"{saved[i].name} ({len(saved[i].song_ids)} songs)",
            )  # fmt: skip
            with st.container(horizontal=True):
                st.button("Open", on_click=open_saved, args=(saved[wanted],))
                st.button(
                    "Delete", on_click=now.library.delete_playlist, args=(wanted,), icon=":material/delete:"
                )

draft = PLAYLIST.get()
if draft is not None:
    # songs that have gone are passed over, and a copy is the song that stands for it
    draft.song_ids = [now.indexed[now.row_of[i]].id for i in draft.song_ids if i in now.row_of]
if draft is None or not draft.song_ids:
    listing.info("Choose a first song, or none, and draw. Between two songs stands why one led to the other.")
    st.stop()

shown = walker.explain(draft.song_ids, draft.taken)
with listing:
    st.subheader(f"{len(shown.songs)} songs · {clock(shown.duration_s)}", anchor=False)
    st.button(
        "Play through",
        icon=":material/play_arrow:",
        on_click=play_songs,
        args=(now.library, list(shown.songs)),
    )
    if draft.seed is not None:
        st.caption(f"Drawn with seed {draft.seed}.")
    if draft.note:
        st.caption(f":material/info: {plain(draft.note)}")
    rows = [
        row_of(song, link=edge.reason if edge else None)
        for song, edge in zip(shown.songs, shown.edges, strict=True)
    ]
    song_list(rows, key="playlist_rows", on_action=act, editable=True)

if "playlist_why" in st.session_state:
    why(*st.session_state.pop("playlist_why"))

with settings:
    st.divider()
    name = st.text_input("Name", "My playlist", key="playlist_name", max_chars=100)
    kind = st.segmented_control("Format", list(FORMATS), default="m3u8", key="playlist_format") or "m3u8"
    relative = st.toggle("Paths relative to a folder", key="playlist_relative")
    roots = now.library.files.roots()
    base = st.text_input("That folder", str(roots[0] if roots else Path.home()), disabled=not relative)
    try:
        content = FORMATS[kind](name, shown.songs, relative_to=Path(base).expanduser() if relative else None)
        st.download_button(
            "Download",
            content,
            f"{name or 'playlist'}.{kind}",
            MIME[kind],
            icon=":material/download:",
            width="stretch",
        )
    except ValueError as error:
        st.error(plain(error))
    if st.button("Save in the library", icon=":material/save:", width="stretch", disabled=not name.strip()):
        try:
            now.library.add_playlists([(name.strip(), None, [s.id for s in shown.songs])], source=SAVED)
            st.toast(f"Saved as {plain(name)}.", icon=":material/check_circle:")
        except MusicsimError as error:
            st.error(plain(error))

with listing:
    figure = map_figure(now, path=draft.song_ids, chosen=draft.song_ids[0], height=420, legend=False)
    st.plotly_chart(figure, key="playlist_map", config={"displayModeBar": False})
    st.caption("The walk on the map; the red ring is where it starts.")
