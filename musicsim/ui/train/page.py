"""The Teach page: compare songs by ear, learn from other data, and manage models."""

import streamlit as st

from musicsim.errors import ModelError
from musicsim.explorer import Snapshot
from musicsim.hooks import MENU
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers, plain
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.jobs_view import latest_training, stop_without_songs
from musicsim.ui.train.models_view import show_models
from musicsim.ui.train.teachers_view import show_teachers
from musicsim.ui.train.training_view import IS_DETAILED, show_options, show_result, show_running, show_start
from musicsim.ui.train.verdict_view import show_verdict


@visitor_may
def draw() -> None:
    """Draw the page; visitors see only the comparisons."""
    snapshot = openers.snapshot()
    st.title("Compare" if is_public() else "Teach", anchor=False)
    core = {"compare": Tab("Compare", 10, [_compare])}
    if not is_public():
        core["train"] = Tab("Other teachers", 20, [_teach])
        if snapshot.library.models.all():
            core["models"] = Tab("Models", 30, [show_models], group=MENU)
    choose_tab("train", tabs_of("train", core)).draw(snapshot)


def _compare(snapshot: Snapshot, *, busy: bool) -> None:
    stop_without_songs(snapshot)
    show_compare()


def _teach(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    native = library.models.native()
    under_sound = None
    try:
        stop_without_songs(snapshot)
        under_sound = openers.snapshot(native.id if native else None)
        show_teachers(under_sound, busy=busy)
    except ModelError as error:  # the model's files are missing; the tab Models still works and can delete the model
        st.error(plain(error), icon=":material/error:")
    training = latest_training(library)
    if training is not None and training.is_active:
        show_running(library, training)
    IS_DETAILED.get()
    details = st.expander("Details", icon=":material/tune:", key=IS_DETAILED.name, on_change="rerun")
    if not details.open:
        return
    with details:
        show_verdict(snapshot, busy=busy)
        if training is not None:
            show_result(library, training)
        if under_sound is not None:
            st.markdown("**Train with your own settings**")
            show_start(under_sound, busy=busy)
            show_options(under_sound)


if __name__ == "__main__":
    draw()
