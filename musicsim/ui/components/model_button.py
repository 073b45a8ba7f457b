"""The button that activates a model."""

import streamlit as st

from musicsim.library import Library, ModelRecord
from musicsim.ui.base import off_if, plain
from musicsim.ui.base.keys import MODEL


def use_button(library: Library, record: ModelRecord, *, where: str, is_primary: bool = False) -> None:
    """Show a button that activates a model for this session and for new sessions."""

    def use() -> None:
        library.models.activate(record.id)
        MODEL.set(record.id)
        st.toast(f"{plain(record.name)} is now in use.", icon=":material/check_circle:")

    st.button(
        "In use" if record.is_active else "Use it", icon=":material/check:", key=f"{where}_use_{record.id}",
        type="primary" if is_primary else "secondary", on_click=use,
        **off_if(record.is_active, "New sessions use this model."),
    )  # fmt: skip
