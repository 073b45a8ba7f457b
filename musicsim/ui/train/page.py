"""The Train page: learn similarity from listeners, evaluate the result, and manage models."""

import streamlit as st

from musicsim.errors import ModelError
from musicsim.explorer import jobs
from musicsim.ui.base import openers
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.train.models_view import show_models
from musicsim.ui.train.training_view import latest_training, show_options, show_start, show_training
from musicsim.ui.train.verdict_view import show_verdict


def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Train", anchor=False)
    library = snapshot.library
    busy = jobs.current(library) is not None
    native = library.models.native()
    under_sound = None
    try:
        stop_without_songs(snapshot)
        seen = openers.snapshot(native.id if native else None)
        show_start(seen, busy=busy)
        under_sound = seen
    except ModelError as error:  # the model's files are missing; the list below still works and can delete the model
        st.error(plain(error), icon=":material/error:")
    training = latest_training(library)
    is_done = training is not None and training.state == "done"
    if training is not None and not is_done:
        show_training(library, training)
    show_verdict(snapshot, busy=busy)
    if training is not None and is_done:
        show_training(library, training)
    if under_sound is None:
        show_models(snapshot, busy=busy)
        return
    more = st.expander("More", icon=":material/tune:", key="train_more", on_change="rerun")
    if not more.open:
        return
    with more:
        options, models = st.tabs(["Options", "Models"])
        with options:
            show_options(under_sound)
        with models:
            show_models(snapshot, busy=busy)


if __name__ == "__main__":
    draw()
