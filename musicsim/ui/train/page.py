"""The Train page: learn similarity from listeners, evaluate the result, and manage models."""

import streamlit as st

from musicsim.errors import ModelError
from musicsim.explorer import jobs
from musicsim.ui.base import openers
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.train.models_view import show_models
from musicsim.ui.train.training_view import latest_training, show_form, show_training
from musicsim.ui.train.verdict_view import show_verdict


def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Train", anchor=False)
    library = snapshot.library
    busy = jobs.current(library) is not None
    native = library.models.native()
    try:
        stop_without_songs(snapshot)
        show_form(openers.snapshot(native.id if native else None), busy=busy)
    except ModelError as error:  # the model's files are missing; the list below still works and can delete the model
        st.error(plain(error), icon=":material/error:")
    training = latest_training(library)
    if training is not None:
        st.divider()
        st.header("3 · Learning", anchor=False)
        show_training(library, training)
    show_verdict(snapshot, busy=busy)
    st.divider()
    show_models(snapshot, busy=busy)


if __name__ == "__main__":
    draw()
