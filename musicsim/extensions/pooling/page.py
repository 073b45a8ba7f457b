"""The Contribute section of the Research page: every byte of the file, and a button that downloads it."""

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.pooling.measuring import contribute, list_comparable
from musicsim.library import BUILT_IN
from musicsim.ui import choose_kind
from musicsim.ui.base import AT_ONCE_S, download, get_desk, plain, task_key, value_of, wait_for
from musicsim.ui.components import ask_coverage


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a form with a ground truth, a model and its public name, and then the text of the file."""
    st.markdown(
        "Help to measure models on the music that people own. musicsim compares a model with Sound in this library "
        "and writes a small file. The file contains counts in bins and rounded differences. It contains no titles, "
        "names, paths or vectors, and musicsim does not send it anywhere."
    )
    records = list_comparable(snapshot.library)
    coverage = ask_coverage(snapshot)
    is_covered = coverage.wait(AT_ONCE_S)
    kind = choose_kind(value_of(coverage))
    if kind is None or not records:
        wait_for([coverage], n_shown=int(is_covered))
        return
    names = {record.name: record for record in records}
    chosen = names[st.selectbox("Compare with Sound", names, key="contribute_model", format_func=plain)]
    public_name = ""
    if chosen.kind not in BUILT_IN:
        public_name = st.text_input(
            "Public name of the model", key="contribute_name", max_chars=40, placeholder="MERT-v1-95M",
            help="Use the name under which the network was published. The name in this library stays here.",
        ).strip()  # fmt: skip
    key = task_key(snapshot, f"contribute {chosen.id} as {public_name} by {kind}")
    task = get_desk("contribute").find(key)

    def start() -> None:
        get_desk("contribute").ask(
            key, lambda progress: contribute(snapshot.library, chosen.name, kind, public_name, progress).text
        )

    if task is None:
        st.button("Show the file", icon=":material/visibility:", type="primary", key="contribute_show", on_click=start)
        return
    task.wait(AT_ONCE_S)
    wait_for([task])
    text = value_of(task)
    if text is not None:
        st.caption(f"These are all {len(text):,} bytes of the file:")
        st.code(text, language="json", height=400)
        download("Download", lambda: text, "contribution.json", "application/json", key="contribute_download")
