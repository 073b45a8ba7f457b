"""The Servers section of the Library page: connect, sync and remove servers, and resolve unclear matches."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connection, Connections, Sends
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.extensions.music_servers.sync import remove
from musicsim.library import Library, day_of
from musicsim.ui.base import Key, off_if, plain, show_errors, toast_errors
from musicsim.ui.components import BUSY, start_job
from musicsim.wording import clean, clock, count

_SENDS: dict[Sends, str] = {"token": "Password, as a token", "password": "Password itself", "key": "API key"}
_CHOICES_SHOWN = 25
_NONE = "None of them"
_ROUND: Key[int] = Key("server_round", int, "number of connections made; a change clears the password field")


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the library's servers, a form to connect a server, and songs whose match is unclear."""
    library = snapshot.library
    st.caption(
        "Songs, stars, ratings and play counts from your Navidrome, Ampache, gonic or other Subsonic server. To write "
        "playlists to a server, use *Send* on the Playlists page."
    )
    try:
        connections = Connections(library).all()
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
        return
    counts = ServerSongs(library).counts()
    for connection in connections:
        _draw_server(library, connection, counts.get(connection.name, (0, 0, 0)), busy=busy)
    with st.container():
        _draw_form(library, is_first=not connections)
    _draw_review(library)


def _draw_server(library: Library, connection: Connection, counts: tuple[int, int, int], *, busy: bool) -> None:
    n_songs, n_matched, n_ambiguous = counts
    facts = [count(n_songs, "song"), f"{n_matched:,} matched"] if n_songs else []
    facts += [f"{n_ambiguous:,} to match"] if n_ambiguous else []
    facts += [f"synced {day_of(connection.synced_at)}" if connection.synced_at else "not synced yet"]
    lists = ServerSongs(library).lists(connection.name)
    facts += [f"{count(len(lists), 'playlist')} written"] if lists else []
    name = connection.name
    with st.container(border=True):
        st.markdown(
            f"**{plain(name)}** · {plain(connection.address)}"
            + (f" · {plain(connection.user)}" if connection.user else "")
            + f"  \n:small[:gray[{' · '.join(facts)}]]"
        )
        with st.container(horizontal=True):
            st.button(
                "Sync", icon=":material/sync:", key=f"server_sync_{name}",
                on_click=start_job, args=(library, "sync"), kwargs={"name": name},
                help="Reads changes from the server and matches its songs to yours.",
            )  # fmt: skip
            n_unmatched = n_songs - n_matched - n_ambiguous
            st.button(
                f"Fetch {count(n_unmatched, 'song')}" if n_unmatched else "Fetch songs",
                icon=":material/cloud_download:", key=f"server_fetch_{name}",
                on_click=start_job, args=(library, "sync"), kwargs={"name": name, "fetch": True},
                **off_if(
                    not n_unmatched, "Every song on the server is in this library.",
                    "Downloads and analyzes songs without a local file. No copy is kept; songs play from the server.",
                ),
            )  # fmt: skip
            with st.popover("Remove", icon=":material/delete:", **off_if(busy, BUSY)):
                st.write("Removes the connection and the songs without a local file. The server does not change.")
                st.button(
                    "Remove server", type="primary", key=f"server_remove_{name}",
                    on_click=toast_errors()(remove), args=(library, name),
                )  # fmt: skip


def _draw_form(library: Library, *, is_first: bool) -> None:
    with st.expander("Connect a server", icon=":material/add:", expanded=is_first), st.form("server_add", border=False):
        first, second = st.columns(2, gap="large")
        with first:
            name = st.text_input("Name", key="server_name", placeholder="home")
            address = st.text_input("Address", key="server_address", placeholder="https://music.example:4533")
            listening = st.toggle("Import plays, stars and ratings", True, key="server_listening")
        with second:
            user = st.text_input("User", key="server_user")
            secret = st.text_input("Password or API key", type="password", key=f"server_secret_{_ROUND.get()}")
            sends = st.selectbox(
                "Sent as", list(_SENDS), format_func=_SENDS.__getitem__, key="server_sends",
                help="A token does not reveal the password. Some servers, such as Supysonic, accept only the password "
                "itself: use an https address for them.",
            )  # fmt: skip
        if st.form_submit_button("Connect", icon=":material/link:"):
            with show_errors():
                connection = Connection(name.strip(), address, user.strip(), secret, sends or "token", listening)
                with st.spinner("Contacting the server"):
                    Subsonic(connection, silence_s=10.0).ping()
                Connections(library).put(connection)
                _ROUND.set(_ROUND.get() + 1)
                st.rerun()


def _draw_review(library: Library) -> None:
    waiting = ServerSongs(library).ambiguous()
    if not waiting:
        return
    st.header("Which song is it?", anchor=False)
    first = waiting[:_CHOICES_SHOWN]
    labels = {
        song.id: f"{clean(song.label)} · {clock(song.duration_s)} · {clean(song.album or song.folder)}"
        for song in library.songs({i for _, song in first for i in song.candidates or ()})
    }
    for number, (server, song) in enumerate(first):
        with st.container(border=True):
            _draw_choice(library, server, song, labels, number)
    if len(waiting) > len(first):
        st.caption(f"{len(waiting) - len(first):,} more will appear once these are reviewed.")


def _draw_choice(library: Library, server: str, song: ServerSong, labels: dict[int, str], number: int) -> None:
    names = " — ".join(filter(None, (song.title, song.artist, song.album)))
    length = f" · {clock(song.duration_s)}" if song.duration_s is not None else ""
    st.markdown(f"**{plain(names or song.id)}**{length} · on {plain(server)}  \n:small[:gray[{plain(song.path)}]]")
    candidates = [i for i in song.candidates or () if i in labels]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Your song", [*candidates, None], format_func=lambda i: labels.get(i, _NONE), key=f"server_choice_{number}",
            label_visibility="collapsed",
        )  # fmt: skip
        st.button(
            "Choose", icon=":material/check:", key=f"server_choose_{number}",
            on_click=toast_errors()(ServerSongs(library).choose), args=(server, song.id, chosen),
        )  # fmt: skip
