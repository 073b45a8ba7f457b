"""Playlists on music servers, on the Playlists page: save the current playlist, regenerate or delete saved ones."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot
from musicsim.extensions.music_servers import lists
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerList, ServerSongs
from musicsim.library import Library, day_of
from musicsim.ui import PLAYLIST_TROUBLE, Sending
from musicsim.ui.base import Key, off_if, plain
from musicsim.wording import clean, count

_SERVER: Key[str] = Key("playlist_server", str, "name of the server that playlists are sent to", per_library=True)
_WRITTEN: Key[tuple[str, str]] = Key(
    "playlist_written", lambda: ("", ""), "server and name of the selected playlist on a server", per_library=True
)
_MAX_AROUND = 100


def _servers(library: Library) -> dict[str, Connection]:
    """Return a dict from name to server; empty if the file cannot be read, which the Library page reports."""
    try:
        return {connection.name: connection for connection in Connections(library).all()}
    except MusicsimError:
        return {}


def target(sending: Sending) -> Callable[[], None] | None:
    servers = _servers(sending.snapshot.library)
    return partial(_draw_target, sending, servers) if servers else None


def _draw_target(sending: Sending, servers: Mapping[str, Connection]) -> None:
    snapshot, name, draft = sending.snapshot, sending.name, sending.draft
    if _SERVER.get() not in servers:
        _SERVER.set(next(iter(servers)))
    if len(servers) > 1:
        st.selectbox("Music server", list(servers), key=_SERVER.name, persist_state="session")
    server = _SERVER.get()
    entry = ServerSongs(snapshot.library).lists(server).get(name)
    is_kept = st.toggle(
        "Keep it filled", bool(entry and entry.request is not None), key=f"playlist_keep_{server}_{name}",
        **off_if(
            draft.request is None, "Only a generated playlist can be regenerated.",
            "Regenerate this playlist whenever `musicsim server refresh` runs, for example nightly.",
        ),
    )  # fmt: skip
    around = 0
    if is_kept:
        around = st.number_input(
            "Recently played songs to use", 0, _MAX_AROUND, 0, key=f"playlist_around_{server}_{name}",
            help="Base the playlist on the songs last played on the server, now and at each refresh. It will differ "
            "from the playlist shown here. Enter 0 to send the playlist as shown.",
        )  # fmt: skip
    st.button(
        f"{'Update' if entry else 'Save'} “{plain(name)}” on {plain(server)}", icon=":material/cloud_upload:",
        key="playlist_server_save", width="stretch", **off_if(not name, "Enter a name first."),
        on_click=_save, args=(sending, servers[server], is_kept, around),
    )  # fmt: skip


def _save(sending: Sending, connection: Connection, is_kept: bool, around: int) -> None:
    snapshot, name, draft = sending.snapshot, sending.name, sending.draft
    request = draft.request if is_kept else None
    with _show_trouble():
        if request is not None and around:
            saved = lists.keep_filled(snapshot, connection, name, request, around)
        else:
            to_save = None if request is None else lists.encode_request(request)
            comment = lists.comment_of(sending.drawn)
            saved = lists.save_list(snapshot.library, connection, name, draft.song_ids, comment, to_save)
        _report_saved(snapshot.library, saved)


@contextmanager
def _show_trouble() -> Iterator[None]:
    try:
        yield
    except MusicsimError as error:
        PLAYLIST_TROUBLE.set(str(error))


def _report_saved(library: Library, saved: lists.SavedList) -> None:
    st.toast(
        f"“{plain(saved.name)}” with {count(len(saved.song_ids), 'song')} is on {plain(saved.server)}.",
        icon=":material/check_circle:",
    )
    if saved.absent:
        labels = ", ".join(song.label for song in library.songs(saved.absent))
        PLAYLIST_TROUBLE.set(f"Not on {saved.server}: {labels}.")


def draw_written(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a menu of the playlists that were written to servers, with buttons to regenerate or delete them."""
    servers, songs = _servers(snapshot.library), ServerSongs(snapshot.library)
    written = {(server, name): entry for server in servers for name, entry in songs.lists(server).items()}
    if not written:
        return
    with st.expander("Playlists on music servers", icon=":material/cloud:"):
        if _WRITTEN.get() not in written:
            _WRITTEN.set(next(iter(written)))
        st.selectbox(
            "Playlist on a server", list(written), key=_WRITTEN.name, persist_state="session",
            format_func=lambda key: clean(key[1]) + (f" · {key[0]}" if len(servers) > 1 else ""),
            label_visibility="collapsed",
        )  # fmt: skip
        server, name = _WRITTEN.get()
        entry = written[server, name]
        kind = "saved" if entry.request is None else "regenerated by `musicsim server refresh`, most recently"
        st.caption(f"On {plain(server)}, {kind} {day_of(entry.written_at)}.")
        with st.container(horizontal=True, gap="small"):
            if entry.request is not None:
                st.button(
                    "Generate again", icon=":material/casino:", key="playlist_server_refresh",
                    on_click=_generate, args=(snapshot, servers[server], entry),
                )  # fmt: skip
            with st.popover("Delete", icon=":material/delete:", key=f"playlist_server_delete_{server}_{name}"):
                st.write(f"“{plain(name)}” will be deleted from {plain(server)}. This library does not change.")
                st.button(
                    "Delete it there", key="playlist_server_delete_it", on_click=_delete,
                    args=(snapshot.library, servers[server], name),
                )  # fmt: skip


def _generate(snapshot: Snapshot, connection: Connection, entry: ServerList) -> None:
    with _show_trouble():
        request, around = lists.read_request(entry.request or {})
        saved = lists.keep_filled(snapshot, connection, entry.name, request, around)
        _report_saved(snapshot.library, saved)


def _delete(library: Library, connection: Connection, name: str) -> None:
    with _show_trouble():
        lists.delete_list(library, connection, name)
        st.toast(f"“{plain(name)}” was deleted from {plain(connection.name)}.", icon=":material/check_circle:")
