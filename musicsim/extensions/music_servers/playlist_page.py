"""Playlists on music servers: that in work is written there, those written are generated again or deleted."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.walk import DrawnPlaylist
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.lists import SavedList, delete_list, save_list
from musicsim.extensions.music_servers.server_playlists import comment_of, keep_filled, read_request, saved_request
from musicsim.extensions.music_servers.server_songs import ServerList, ServerSongs
from musicsim.library import Library
from musicsim.library.importing import day_of
from musicsim.ui.base.state import Key
from musicsim.ui.base.text import plain, shown
from musicsim.ui.playlist.actions import TROUBLE
from musicsim.ui.playlist.draft import PlaylistDraft

_SERVER: Key[str] = Key("playlist_server", str, "name of the server that playlists go to", per_library=True)
_WRITTEN: Key[tuple[str, str]] = Key(
    "playlist_written", lambda: ("", ""), "server and name of the chosen playlist there", per_library=True
)
_MAX_AROUND = 100


def servers_of(library: Library) -> dict[str, Connection]:
    """Connected servers by their names; none where their file cannot be read, which the Library page says."""
    try:
        return {connection.name: connection for connection in Connections(library).all()}
    except MusicsimError:
        return {}


# --- the playlist in work -------------------------------------------------------------------------


def send_to_server(now: Snapshot, name: str, draft: PlaylistDraft, drawn: DrawnPlaylist) -> None:
    """Save the playlist on a server under a name, or update it there; nothing where no server is connected."""
    servers = servers_of(now.library)
    if not servers:
        return
    if _SERVER.get() not in servers:
        _SERVER.set(next(iter(servers)))
    if len(servers) > 1:
        st.selectbox("Music server", list(servers), key=_SERVER.name, persist_state="session")
    server = _SERVER.get()
    known = ServerSongs(now.library).lists(server).get(name)
    is_kept = st.toggle(
        "Keep it filled", bool(known and known.request is not None), key=f"playlist_keep_{server}_{name}",
        disabled=draft.request is None,
        help="`musicsim server refresh` generates it again from the same options, every night if you like. Only for "
        "playlists that were generated, not opened.",
    )  # fmt: skip
    around = (
        st.number_input(
            "Around the last songs played there", 0, _MAX_AROUND, 0, key=f"playlist_around_{server}_{name}",
            help="So many of them, also now: other songs than those shown go there. 0 = as shown.",
        )
        if is_kept
        else 0
    )  # fmt: skip
    st.button(
        f"{'Update' if known else 'Save'} “{plain(shown(name))}” on {plain(server)}", icon=":material/cloud_upload:",
        key="playlist_server_save", width="stretch", disabled=not name,
        on_click=_save, args=(now, servers[server], name, draft, drawn, is_kept, around),
    )  # fmt: skip


def _save(
    now: Snapshot, connection: Connection, name: str, draft: PlaylistDraft, drawn: DrawnPlaylist, is_kept: bool,
    around: int,
) -> None:  # fmt: skip
    request = draft.request if is_kept else None
    try:
        if request is not None and around:
            saved = keep_filled(now, connection, name, request, around)
        else:
            kept = None if request is None else saved_request(request)
            saved = save_list(now.library, connection, name, draft.song_ids, comment_of(drawn), kept)
    except MusicsimError as error:
        TROUBLE.set(str(error))
        return
    _say(now.library, saved)


def _say(library: Library, saved: SavedList) -> None:
    n = len(saved.song_ids)
    st.toast(
        f"“{plain(saved.name)}” with {n} {'song' if n == 1 else 'songs'} is on {plain(saved.server)}.",
        icon=":material/check_circle:",
    )
    if saved.absent:
        labels = ", ".join(song.label for song in library.songs(saved.absent))
        TROUBLE.set(f"{saved.server} does not have {labels}.")


# --- those that were written ----------------------------------------------------------------------


def server_lists(now: Snapshot) -> None:
    """Choose among the playlists that were written to servers, to generate one again or to delete it there."""
    servers = servers_of(now.library)
    written = {
        (server, name): kept for server in servers for name, kept in ServerSongs(now.library).lists(server).items()
    }
    if not written:
        return
    with st.expander("Playlists on music servers", icon=":material/cloud:"):
        if _WRITTEN.get() not in written:
            _WRITTEN.set(next(iter(written)))
        st.selectbox(
            "Playlist on a server", list(written), key=_WRITTEN.name, persist_state="session",
            format_func=lambda which: shown(which[1]) + (f" · {which[0]}" if len(servers) > 1 else ""),
            label_visibility="collapsed",
        )  # fmt: skip
        server, name = _WRITTEN.get()
        kept = written[server, name]
        kind = "saved" if kept.request is None else "kept filled, written"
        st.caption(f"On {plain(server)}, {kind} {day_of(kept.written_at)}.")
        with st.container(horizontal=True, gap="small"):
            if kept.request is not None:
                st.button(
                    "Generate again", icon=":material/casino:", key="playlist_server_refresh",
                    on_click=_generate, args=(now, servers[server], kept),
                )  # fmt: skip
            with st.popover("Delete", icon=":material/delete:", key=f"playlist_server_delete_{server}_{name}"):
                st.write(f"“{plain(name)}” will be deleted on {plain(server)}; nothing changes here.")
                st.button(
                    "Delete it there", key="playlist_server_delete_it", on_click=_delete,
                    args=(now.library, servers[server], name),
                )  # fmt: skip


def _generate(now: Snapshot, connection: Connection, kept: ServerList) -> None:
    try:
        saved = keep_filled(now, connection, kept.name, *read_request(kept.request or {}))
    except MusicsimError as error:
        TROUBLE.set(str(error))
        return
    _say(now.library, saved)


def _delete(library: Library, connection: Connection, name: str) -> None:
    try:
        delete_list(library, connection, name)
    except MusicsimError as error:
        TROUBLE.set(str(error))
        return
    st.toast(f"“{plain(name)}” was deleted on {plain(connection.name)}.", icon=":material/check_circle:")
