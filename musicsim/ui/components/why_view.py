"""A dialog that explains the similarity of two songs with waveforms, shared sounds, tags and listeners.

The hook ``below_why`` is ``function(snapshot: Snapshot, query: int | Example, other_id: int) -> None``. It may add
facts about the two songs at the end of the dialog.
"""

from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.search.explanation import Explanation, explain
from musicsim.explorer.search.query import Example, Examples, Query, examples_of, similarities_of, similarity_of
from musicsim.explorer.search.why import Side, Why
from musicsim.explorer.search.why_groups import Share
from musicsim.explorer.snapshot.map_columns import PALETTE, UNKNOWN_COLOUR
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.public import is_allowed
from musicsim.ui.base.keys import DIALOG, close_dialog, subject_of
from musicsim.ui.base.scripts import component
from musicsim.ui.base.text import plain
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.components.downloads import chart
from musicsim.ui.components.listening import upload_address
from musicsim.wording import clean

_LETTERS = "ABCDEF"
_MAX_EXAMPLES = 5  # maximum number of examples whose similarities are listed
_COLORS = PALETTE[: len(_LETTERS)]
_LABEL_PX = 30  # width of a number outside its bar
_DIALOG = "why"  # its subject: a result's song id, and the name of its list (empty until shown)


def ask_why(other_id: int) -> None:
    """Request the dialog of :func:`show_why` for a result; call this in a callback."""
    DIALOG.set((_DIALOG, (other_id, "")))


def show_why(snapshot: Snapshot, query: Query, seed: str, factor: str = "") -> None:
    """Show the dialog that :func:`ask_why` requested, until it is closed; call this after the list of results.

    `seed` is the name of the list; if a different list is shown, the dialog closes. `factor` is the only one that the
    list compares, if any.
    """
    other_id, shown_over = subject_of(_DIALOG) or (None, "")
    if other_id is None:
        return
    if shown_over in ("", seed) and snapshot.songs_by_id([other_id]):
        DIALOG.set((_DIALOG, (other_id, seed)))
        _why_dialog(snapshot, query, other_id, factor)
    else:
        close_dialog()


@st.dialog("Why are these two similar?", width="large", on_dismiss=close_dialog)
def _why_dialog(snapshot: Snapshot, query: Query, other_id: int, factor: str) -> None:
    """Explain the result with this song id; if there are several examples, the user chooses one to compare with."""
    if snapshot.model is None:  # the model of these results has been deleted
        st.info("This library has no model that can explain the similarity.")
        return
    try:
        example = _choose_example(snapshot, examples_of(query), other_id)
        explanation = explain(snapshot, example, other_id)
    except MusicsimError as error:
        st.info(plain(error))
        return
    (one, other), why, listed = explanation.sides, explanation.why, explanation.similarity
    before = f"; before learning it was {why.stages[0].similarity:.2f}" if len(why.stages) > 1 else ""
    st.markdown(f"Similarity: **{listed:.2f}** out of 1{before}.")
    if factor:
        st.caption(f"The list shows the similarity in {plain(factor)}, while this explanation is about everything.")
    elif snapshot.model.local_ is not None:
        st.caption(
            "The list may show a different similarity: it uses the metric of the query's region, while this "
            "explanation uses the mean of all regions."
        )
    _show_waves(snapshot, why, one, other)
    if why.passages[0]:
        st.caption("Click a letter to hear a shared sound; the gray areas show where shared sounds occur.")
    for note in explanation.notes:
        st.caption(f":material/info: {plain(note)}")
    st.markdown("**Sources of the similarity**")
    chart(_shares_figure(explanation.parts, why.shared), key="why_shares", name="why")
    st.caption(f"Points out of 100; they add up to {100 * listed:.0f}.")
    if why.apart:
        st.caption(f"Largest differences (share of the squared distance): {_describe_differences(explanation)}.")
    st.markdown("**In common**")
    st.markdown(_describe_common(why, one, other))
    for draw_below in filter(is_allowed, load_hooks("below_why")):
        draw_below(snapshot, example, other_id)


def _choose_example(snapshot: Snapshot, examples: Examples, other_id: int) -> int | Example:
    """Return the example to compare a result with; if there are several, let the user choose one."""
    if len(examples.like) + len(examples.unlike) == 1:
        return examples.like[0]
    to_like, to_unlike = similarities_of(snapshot, examples, other_id)
    ids = [i for i in (*examples.like, *examples.unlike) if isinstance(i, int)]
    titles = {song.id: song.title for song in snapshot.songs_by_id(ids)}

    def name(example: int | Example) -> str:
        return plain(example.name if isinstance(example, Example) else titles.get(example, ""))

    order = sorted(range(len(examples.like)), key=lambda i: -to_like[i])
    nearest = ", ".join(f"{to_like[i]:.2f} to “{name(examples.like[i])}”" for i in order[:_MAX_EXAMPLES])
    st.markdown(
        f"Similarity to all examples together: **{similarity_of(snapshot, examples, other_id):.2f}** out of 1. The "
        f"most similar example counts most: {nearest}{' and others' * (len(order) > _MAX_EXAMPLES)}."
    )
    if examples.unlike:
        away = ", ".join(f"“{name(i)}” ({s:.2f})" for i, s in zip(examples.unlike, to_unlike, strict=True))
        st.caption(f"The similarity is lowered because the result resembles {away}, which you marked “less like this”.")
    choices = [examples.like[i] for i in order]
    if len(choices) == 1:
        return choices[0]
    place = st.selectbox(
        "Compared with", range(len(choices)), format_func=lambda i: name(choices[i]), key=f"why_example_{other_id}"
    )
    return choices[place]


def _show_waves(snapshot: Snapshot, why: Why, one: Side, other: Side) -> None:
    loudest = max((float(curve.max()) for curve in why.curves if len(curve)), default=1.0)
    sides = []
    for side, passages, curve, heard_s in zip((one, other), why.passages, why.curves, why.heard_s, strict=True):
        height = np.clip(curve / max(loudest, 1e-9), 0.0, 1.0)
        sides.append(
            {
                "title": clean(side.title), "sub": clean(side.sub), "duration_s": side.duration_s,
                "starts_s": side.starts_s, "heard_s": heard_s, "url": _address(snapshot, side),
                "peaks": np.round(side.peaks.astype(float), 3).tolist(),
                "curve": np.round(height.astype(float), 3).tolist(),
                "passages": [{"start_s": p.start_s, "end_s": p.end_s, "slot": p.slot} for p in passages],
            }
        )  # fmt: skip
    slots = [
        {"letter": letter, "colour": color, "words": words}
        for letter, color, words in zip(_LETTERS, _COLORS, why.shared, strict=False)
    ]
    component("two_waves")(key="why_waves", data={"slots": slots, "sides": sides}, height="content")


def _address(snapshot: Snapshot, side: Side) -> str | None:
    if side.song_id is None:
        upload = EXAMPLE.get()
        return upload_address(upload) if upload is not None else None
    return f"/songs/{side.song_id}/audio?library={quote(snapshot.library.name)}"


def _shares_figure(parts: Sequence[Share], shared: Sequence[str]) -> go.Figure:
    """Return a bar chart of each part's points, before learning (gray) and in the current model."""
    letters = dict(zip(shared, _LETTERS, strict=False))  # letters on the waveforms, keyed by the label of their bar
    names = [f"{letters.get(part.words, '')}  {part.words}".strip() for part in parts]
    *before, points = (
        [100 * part.similarity for part in stage] for stage in zip(*(p.stages for p in parts), strict=True)
    )
    figure = go.Figure()
    text = {
        "texttemplate": "%{x:.1f}", "textposition": "outside", "cliponaxis": False, "orientation": "h",
        "hoverinfo": "skip",
    }  # fmt: skip
    for name in names:  # above its bar, because one negative bar would move axis labels away from all other bars
        figure.add_annotation(x=0, y=name, text=name, showarrow=False, xanchor="left", yshift=27 if before else 22)
    if before:
        figure.add_bar(x=before[0], y=names, name="before learning", marker={"color": UNKNOWN_COLOUR}, **text)
    name = "after learning" if before else "share"
    figure.add_bar(x=points, y=names, name=name, marker={"color": _COLORS[0]}, showlegend=bool(before), **text)
    is_negative = any(value < 0 for stage in (points, *before) for value in stage)
    figure.update_layout(
        height=60 + (64 if before else 46) * len(names),
        margin={"l": _LABEL_PX if is_negative else 0, "r": _LABEL_PX, "t": 12, "b": 0},
        xaxis={"visible": False},
        yaxis={"autorange": "reversed", "visible": False, "fixedrange": True},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top"},
        bargap=0.5,
        dragmode=False,
    )
    return figure


def _describe_differences(explanation: Explanation) -> str:
    sentences = []
    for share, parts, more_in in explanation.differences():
        *before, part = (f"{one:.0%}" for one in parts)
        if before:
            part = f"{part}; {before[0]} before learning"
        if more_in is not None:
            part += f"; more in “{plain(explanation.sides[more_in].title)}”"
        sentences.append(f"{share.words} ({part})")
    return "; ".join(sentences)


def _describe_common(why: Why, one: Side, other: Side) -> str:
    tags = ", ".join(plain(tag) for tag in why.tags) or "none"
    if why.listeners_jaccard is None:
        listeners = "no listening data" if not one.listeners | other.listeners else "no listening data for one song"
    else:
        people = "1 person has" if why.n_listeners == 1 else f"{why.n_listeners:,} people have"
        listeners = f"{people} played both, {why.listeners_jaccard:.0%} of those who played either"
    guesses = f"A learned ear recognizes in both: {', '.join(map(plain, why.guesses))}.  \n" if why.guesses else ""
    return f"{guesses}Tags: {tags}.  \nListeners: {listeners}."
