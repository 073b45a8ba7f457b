"""The Exports section of the Research page: a form to export data, and links to the exported files."""

from urllib.parse import quote

import streamlit as st

from musicsim.api import path_prefix
from musicsim.explorer import Snapshot
from musicsim.extensions.exports.request import EXPORTS
from musicsim.extensions.exports.routes import export_path, exports_of
from musicsim.ui.base import off_if, plain
from musicsim.ui.components import start_job

NAMES = {".parquet": "Parquet", ".npz": "NPZ", ".csv": "CSV", ".txt": "MIREX list", ".zip": "ZIP"}


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a choice of exports, which use the active model, and links to the exported files."""
    library = snapshot.library
    has_songs = snapshot.n_indexed > 0
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("Data", EXPORTS, format_func=lambda name: EXPORTS[name].label, key="export_what", width=200)
        ending = st.selectbox(
            "Format", EXPORTS[kind].endings, format_func=NAMES.__getitem__, key="export_as", width=200
        )
        st.button(
            "Export", icon=":material/download:", key="export_start", type="primary",
            **off_if(not has_songs, "There are no songs yet."), on_click=start_job, args=(library, "export"),
            kwargs={"what": kind, "path": str(export_path(library, kind, ending))},
        )  # fmt: skip
    st.markdown(EXPORTS[kind].help)
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
