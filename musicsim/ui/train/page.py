"""The Train page: learn similarity, compare songs by ear, and manage models."""

from functools import partial

import streamlit as st

from musicsim.errors import ModelError
from musicsim.explorer import Snapshot
from musicsim.explorer.requests.training import ANSWERS
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers, plain
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.train.models_view import show_models
from musicsim.ui.train.training_view import latest_training, select_training, show_options, show_start, show_training
from musicsim.ui.train.verdict_view import show_verdict


@visitor_may
def draw() -> None:
    """Draw the page; visitors see only the comparisons."""
    snapshot = openers.snapshot()
    st.title("Compare" if is_public() else "Train", anchor=False)
    core = {"compare": Tab("Compare", 20, [_compare])}
    if not is_public():
        core["train"] = Tab("Train", 10, [_train])
        if snapshot.library.models.all():
            core["models"] = Tab("Models", 30, [show_models])
    choose_tab("train", tabs_of("train", core)).draw(snapshot)


def _compare(snapshot: Snapshot, *, busy: bool) -> None:
    stop_without_songs(snapshot)
    show_compare(None if is_public() else partial(select_training, ANSWERS))


def _train(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    native = library.models.native()
    under_sound = None
    try:
        stop_without_songs(snapshot)
        seen = openers.snapshot(native.id if native else None)
        show_start(seen, busy=busy)
        under_sound = seen
    except ModelError as error:  # the model's files are missing; the tab Models still works and can delete the model
        st.error(plain(error), icon=":material/error:")
    training = latest_training(library)
    is_done = training is not None and training.state == "done"
    if training is not None and not is_done:
        show_training(library, training)
    show_verdict(snapshot, busy=busy)
    if training is not None and is_done:
        show_training(library, training)
    if under_sound is not None:
        more = st.expander("More", icon=":material/tune:", key="train_more", on_change="rerun")
        if more.open:
            with more:
                show_options(under_sound)


if __name__ == "__main__":
    draw()
