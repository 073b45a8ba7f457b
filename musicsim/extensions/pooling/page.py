"""The Contribute section of the Research page: every byte of the file, and a button that downloads it."""

from collections.abc import Hashable

import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.pooling.contribution import Contribution
from musicsim.extensions.pooling.measuring import contribute, list_comparable, needs_name
from musicsim.library import Library
from musicsim.ui.base.desk import AT_ONCE_S, desk, task_key, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.coverage import ask_coverage
from musicsim.ui.research.quality_view import choose_kind

_MODEL: Key[str] = Key("contribute_model", str, "id of the model to contribute a comparison of", per_library=True)
_DESK = "contribute"


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a form with a model, its public name and a ground truth, and then the text of the file."""
    st.markdown(
        "Help to measure models on the music that people own. musicsim compares a model with Sound in this library "
        "and writes a small file. The file contains counts in bins and rounded differences. It contains no titles, "
        "names, paths or vectors, and musicsim does not send it anywhere."
    )
    records = {record.id: record for record in list_comparable(snapshot.library)}
    coverage = ask_coverage(snapshot)
    is_covered = coverage.wait(AT_ONCE_S)
    kind = choose_kind(value_of(coverage))
    if kind is None or not records:
        wait_for([coverage], n_shown=int(is_covered))
        return
    if _MODEL.get() not in records:
        _MODEL.set(next(iter(records)))
    chosen = st.selectbox(
        "Compare with Sound", list(records), **_MODEL.widget(), format_func=lambda i: plain(records[i].name)
    )
    public_name = ""
    if needs_name(records[chosen]):
        public_name = st.text_input(
            "Public name of the model", key="contribute_name", max_chars=40, placeholder="MERT-v1-95M",
            help="Use the name under which the network was published. The name in this library stays here.",
        ).strip()  # fmt: skip
    key = task_key(snapshot, f"contribute {chosen} as {public_name} by {kind}")
    task = desk(_DESK).find(key)
    if task is None:
        st.button(
            "Show the file", icon=":material/visibility:", type="primary", key="contribute_show", on_click=_start,
            args=(key, snapshot.library, records[chosen].name, kind, public_name),
        )  # fmt: skip
        return
    task.wait(AT_ONCE_S)
    wait_for([task])
    contribution = value_of(task)
    if contribution is not None:
        _show(contribution)


def _start(key: Hashable, library: Library, name: str, kind: str, public_name: str) -> None:
    desk(_DESK).ask(key, lambda progress: contribute(library, name, kind, public_name, progress))


def _show(contribution: Contribution) -> None:
    st.caption(f"These are all {len(contribution.text):,} bytes of the file:")
    st.code(contribution.text, language="json", height=400)
    st.download_button(
        "Download", contribution.text, "contribution.json", "application/json", key="contribute_download",
        icon=":material/download:", on_click="ignore",
    )  # fmt: skip
