"""The Dask cluster in a library's settings."""

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.cluster.address import CLUSTER_VARIABLE, is_trusted, needs_trust, trust
from musicsim.extensions.cluster.connection import cluster_of, cluster_state
from musicsim.library import Library
from musicsim.ui.base import off_if, plain, show_errors, toast_errors

_TRUST = (
    "A cluster on a different machine is used only if you trust it. Dask exchanges pickles, so anyone who controls the "
    "scheduler or the network in between can run code on this machine. Your choice is saved on this machine, not in "
    "the library. You do not need this if you use tls:// and your own certificates."
)


def _set_cluster(library: Library) -> None:
    with toast_errors(ValueError):
        library.set_setting("cluster", st.session_state["setting_cluster"])


def _set_trust(address: str, key: str) -> None:
    with toast_errors(ValueError):
        trust(address, is_trusted=st.session_state[key])


def draw(snapshot: Snapshot, *, busy: bool) -> None:  # stays enabled while a job is running
    """Draw the cluster's address, a checkbox to trust it, and its state on request."""
    library = snapshot.library
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Dask cluster", str(library.settings["cluster"]), key="setting_cluster",
            on_change=_set_cluster, args=(library,), placeholder="tcp://10.0.0.5:8786",
            help="Address of a Dask scheduler whose workers run the scans, or local:4 for four workers on this machine."
            f" Leave empty to use no cluster. The environment variable {CLUSTER_VARIABLE} takes precedence.",
        )  # fmt: skip
        is_off = off_if(not cluster_of(library), "Enter an address first.")
        wants_check = st.button("Check", icon=":material/lan:", key="check_cluster", **is_off)
    address = str(library.settings["cluster"])
    if needs_trust(address):
        # each address has its own key, so that a checkmark does not apply to a new address
        key = f"trust_cluster_{address}"
        st.checkbox(
            f"Trust {plain(address)} without TLS", is_trusted(address), key=key, on_change=_set_trust,
            args=(address, key), help=_TRUST,
        )  # fmt: skip
    if wants_check:
        with show_errors():
            state = cluster_state(library)
            board = f" · [dashboard]({state.dashboard})" if state.dashboard else ""
            st.success(f"{plain(state.summary)}{board}")
