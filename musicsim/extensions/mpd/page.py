"""Where MPD answers, in the section Servers: tried, and kept for the buttons of pages and for commands."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.mpd.client import Mpd, MpdAddress, is_in_environment, is_mpd_set, keep_mpd, mpd_address
from musicsim.library import Library
from musicsim.ui.base.text import plain

_MAX_PORT = 65_535


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """The MPD that is set, or a form for one."""
    library = snapshot.library
    st.subheader("MPD", anchor=False)
    if not is_mpd_set(library):
        _form(library)
        return
    with st.container(border=True):
        try:
            address = mpd_address(library)
        except MusicsimError as error:
            st.error(plain(error), icon=":material/error:")
        else:
            facts = ["playlists are queued and saved there on the Playlist page, under *Send*"]
            facts += ["with a password"] if address.password else []
            facts += [f"its music is {plain(address.music)}"] if address.music else []
            facts += ["named by `MPD_HOST` or `MPD_PORT`"] if is_in_environment() else []
            st.markdown(f"**{plain(address)}**  \n:small[:gray[{' · '.join(facts)}]]")
        if not is_in_environment():
            st.button("Remove", icon=":material/delete:", key="mpd_remove", on_click=keep_mpd, args=(library, None))


def _form(library: Library) -> None:
    with st.expander("Connect MPD", icon=":material/add:"), st.form("mpd_add", border=False):
        first, second = st.columns(2, gap="large")
        with first:
            host = st.text_input("Host, or path of its socket", key="mpd_host", placeholder="localhost")
            port = st.number_input("Port", 1, _MAX_PORT, MpdAddress().port, key="mpd_port")
        with second:
            password = st.text_input("Password", type="password", key="mpd_password")
            music = st.text_input(
                "Its folder of music, on this machine", key="mpd_music",
                help="MPD's music_directory as this machine sees it. Not needed with a socket, nor where it is a "
                "folder of this library.",
            )  # fmt: skip
        if st.form_submit_button("Connect", icon=":material/link:", key="mpd_connect"):
            address = MpdAddress(host.strip() or MpdAddress().host, int(port), password, music.strip())
            try:
                with st.spinner("Asking MPD"), Mpd(library, address):
                    keep_mpd(library, address)
            except MusicsimError as error:
                st.error(plain(error), icon=":material/error:")
            else:
                st.rerun()
