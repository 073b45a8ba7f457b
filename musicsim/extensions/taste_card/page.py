"""The taste card below the answers in Compare."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.taste_card.picture import draw_picture
from musicsim.extensions.taste_card.taste import Taste, estimate_taste, rate_questions
from musicsim.library import Judgment
from musicsim.ui import CRITERION, LISTENER
from musicsim.ui.base import download, opinions, plain, show_errors


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the card of a listener in an expander, a button that saves it as a picture, and a choice of questions."""
    more = st.expander("Your taste", icon=":material/hearing:", key="taste_card", on_change="rerun")
    if not more.open:
        return
    listener = LISTENER.get()
    theirs = opinions(snapshot.library).judgments.answers(listener)
    key = (snapshot.library.folder, snapshot.revision, snapshot.model_id, listener, len(theirs), theirs[-1:])
    with more, show_errors():
        taste = _estimate(key, snapshot, theirs)
        if taste.n_needed:
            st.info(taste.describe()[0], icon=":material/info:")
        else:
            picture = draw_picture(taste)
            st.image(picture, output_format="PNG")
            st.markdown("\n".join(f"- {plain(line)}" for line in taste.describe()))
            st.caption("A band contains your true share in 95 of 100 cases if you judge by these parts.")
            download("Download the picture", lambda: picture, "my taste.png", "image/png", key="taste_card_download")
        is_narrowing = st.toggle(
            "Ask me what would narrow this", CRITERION.get() is rate_questions, key="taste_card_narrow",
            help="The next questions narrow the widest band. Random and repeated questions still occur.",
        )  # fmt: skip
        CRITERION.set(rate_questions if is_narrowing else None)


@st.cache_data(max_entries=16, show_spinner=False)
def _estimate(key: tuple[Any, ...], _snapshot: Snapshot, _answers: Sequence[Judgment]) -> Taste:
    return estimate_taste(_snapshot, _answers, key[3])
