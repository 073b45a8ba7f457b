"""A measurement that starts with a click: its button, its progress, and its result."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.progress import Progress
from musicsim.ui.base import get_desk, task_key, value_of, wait_for

T = TypeVar("T")


def show_measurement(
    snapshot: Snapshot, name: str, *, label: str, icon: str, measure: Callable[[Progress], T], show: Callable[[T], None]
) -> None:
    """Show a button that starts `measure`; after a click, show progress with *Cancel*, then the result.

    `name` is unique among measurements: it names the thread, which all sessions share, and the keys of the buttons.
    """
    key, own_desk = task_key(snapshot, name), get_desk(name)
    task = own_desk.find(key)

    def restart() -> None:
        own_desk.cancel(key)
        own_desk.ask(key, measure)

    if task is None:
        st.button(label, icon=icon, key=f"measure_{name}", on_click=restart)
        return
    if not task.future.done():
        wait_for([task], n_shown=0)
        st.button("Cancel", icon=":material/close:", key=f"cancel_{name}", on_click=own_desk.cancel, args=(key,))
        return
    result: T | None = value_of(task)
    if result is not None:
        show(result)
    st.button("Measure again", icon=":material/refresh:", key=f"clear_{name}", on_click=restart)
