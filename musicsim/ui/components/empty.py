"""Next steps for an empty library."""

import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.components.jobs_view import start_job


def demo_button(snapshot: Snapshot) -> None:
    """Show a button that composes the demo collection."""
    st.button(
        "Load the demo collection", icon=":material/auto_awesome:", on_click=start_job, args=(snapshot.library, "demo"),
        help="Composes 360 short songs by made-up artists on this machine; takes one to two minutes.",
    )  # fmt: skip


@st.fragment(run_every=1.0)
def _wait(snapshot: Snapshot) -> None:
    """Run the page again as soon as there is a model, or the job has ended."""
    if snapshot.library.models.active() is not None or jobs.current(snapshot.library) is None:
        st.rerun()


def stop_without_songs(snapshot: Snapshot) -> None:
    """End the page here, with a next step, if no song can be compared yet."""
    if snapshot.n_indexed:
        return
    job = jobs.current(snapshot.library)
    if job is not None:
        st.info(
            f"{jobs.job_kinds()[job.kind].title}: the first songs will appear here in a moment.",
            icon=":material/hourglass:",
        )
        _wait(snapshot)
    elif is_public():
        st.info("This library is empty.", icon=":material/info:")
    elif snapshot.n_songs:
        st.info("These songs have not been compared yet.", icon=":material/info:")
        st.button("Compare them", on_click=start_job, args=(snapshot.library, "refresh"))
    else:
        st.info("No songs yet: add a folder of music or load the demo collection.", icon=":material/info:")
        st.page_link(PAGES["library"], label="Add a folder", icon=":material/create_new_folder:")
        demo_button(snapshot)
    st.stop()
