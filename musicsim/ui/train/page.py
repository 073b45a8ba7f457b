"""Train: teach the library what its listeners mean by similar, see whether it helped, and keep its models."""

import streamlit as st

from musicsim.errors import ModelError
from musicsim.explorer import jobs
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.train.models_view import models_section
from musicsim.ui.train.training_view import choices, latest_training, training_run
from musicsim.ui.train.verdict_view import verdict


def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Train", anchor=False)
    library = now.library
    busy = jobs.current(library) is not None
    native = library.models.native()
    try:
        stop_without_songs(now)
        choices(snapshot(native.id if native else None), busy=busy)
    except ModelError as error:  # its files are gone: below, where models are deleted, the page goes on
        st.error(plain(error), icon=":material/error:")
    training = latest_training(library)
    if training is not None:
        st.divider()
        st.subheader("3 · Learning", anchor=False)
        training_run(library, training)
    verdict(now, busy=busy)
    st.divider()
    models_section(now, busy=busy)


if __name__ == "__main__":
    draw()
