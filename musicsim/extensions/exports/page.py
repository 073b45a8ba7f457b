"""The Export section of the Library page: buttons to export data, and links to the exported files."""

from urllib.parse import quote

import streamlit as st

from musicsim.api import path_prefix
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.exports.request import EXPORTS
from musicsim.extensions.exports.routes import export_path, exports_of
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import start_job

NAMES = {".parquet": "Parquet", ".npz": "NPZ", ".csv": "CSV", ".txt": "MIREX list", ".zip": "JAMS"}


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a button for each kind of export, with the active model, and links to the exported files."""
    library = snapshot.library
    has_songs = snapshot.n_indexed > 0
    for kind, what in EXPORTS.items():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            ending = st.selectbox(
                what.label, what.endings, format_func=NAMES.__getitem__, key=f"export_as_{kind}",
                help=what.help, width=200,
            )  # fmt: skip
            st.button(
                "Export", icon=":material/download:", key=f"export_{kind}", disabled=busy or not has_songs,
                on_click=start_job, args=(library, "export"),
                kwargs={"what": kind, "path": str(export_path(library, kind, ending))},
            )  # fmt: skip
    files = exports_of(library)
    if files:
        st.header("Exported files", anchor=False)
    prefix = path_prefix(st.get_option("server.baseUrlPath") or "")
    for path in files:
        address = f"{prefix}/exports/{quote(path.name)}?library={quote(library.name)}"
        n_bytes = path.stat().st_size
        size = f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.1f} kB"
        st.link_button(plain(f"{path.name} · {size}"), address, icon=":material/download:", type="tertiary")
    st.caption(
        "Exporting the neighbors of more than 100,000 songs takes hours: use a cluster, or export a sample with "
        "`musicsim export neighbours FILE --sample 1000`. A new export replaces the previous one."
    )
