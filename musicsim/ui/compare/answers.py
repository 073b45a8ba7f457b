"""What answers about songs are worth so far, in plain words; their way out, in and away; training on them."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.survey.questions import Rate, Standing, standing
from musicsim.library import Library
from musicsim.library.importing.answers import AnswersImport, export_answers, import_answers
from musicsim.library.stores.judgments import Judgment
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.base.visitors import opinions
from musicsim.ui.compare.session import rename, who
from musicsim.ui.train.training_view import learn_from

_STAGE = 25
_LISTED = 20

_ROUND: Key[int] = Key("compare_import_round", lambda: 0, "counts imports, so that the box empties")
_IMPORTED: Key[tuple[Path, AnswersImport | str] | None] = Key(
    "compare_imported", lambda: None, "what became of the last file, or what is wrong with it, and whose it was"
)


def so_far(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    """How many answers there are and what they are worth, beside what can be done with them.

    Of all answers of the library, and by the listener who sits here; empty for nobody yet.
    """
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("So far", anchor=False)
        _worth(library, answers, listener)
    with right:
        st.subheader("Your answers", anchor=False)
        _uses(library, answers, listener)


# --- what they are worth --------------------------------------------------------------------------


@st.cache_data(max_entries=16, show_spinner=False)
def _standing(folder: Path, version: tuple[Any, ...], listener: str | None, _answers: Sequence[Judgment]) -> Standing:
    return standing(_answers, listener)


def _stands(library: Library, answers: Sequence[Judgment], listener: str | None) -> Standing:
    # no number is given twice; whose an answer is may change
    last = max((answer.id for answer in answers), default=0)
    people = hash(tuple(answer.listener for answer in answers))
    return _standing(library.folder, (len(answers), last, people), listener, answers)


def _worth(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    everybody = _stands(library, answers, None)
    mine = _stands(library, answers, listener) if listener else everybody
    n, name = mine.n_answers, plain(listener) if listener else "Everybody"
    missing = _STAGE - n % _STAGE
    unsure = f", {mine.n_unsure:,} of them unsure" if mine.n_unsure else ""
    st.progress(n % _STAGE / _STAGE, text=f"**{name}**: {n:,} of {n + missing:,} answers{unsure}")
    st.markdown("\n".join(f"- {line}" for line in (_consistency(mine), _foreseen(mine))))
    if everybody.n_listeners > 1:
        people = f"{everybody.n_listeners:,} people gave {_counted(everybody.n_answers, 'answer')}."
        lines = [_consistency(everybody), _agreement(everybody), _foreseen(everybody)]
        st.markdown(f"**All together**: {people}\n" + "\n".join(f"- {line}" for line in lines))
    else:
        st.caption("Agreement appears here once a second person has answered.")


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def _share(rate: Rate) -> str:
    """A share in words, with how sure it is and what guessing would give."""
    assert rate.share is not None
    guessing = f"; guessing: {rate.chance:.0%}" if rate.chance is not None else ""
    return (
        f"{round(rate.share * rate.n):,} of {rate.n:,} (**{rate.share:.0%}**, 95% interval {rate.low:.0%} "
        f"to {rate.high:.0%}{guessing})"
    )


def _consistency(of: Standing) -> str:
    if of.consistency.share is None:
        return "Consistency: one question in ten is repeated in another order; none has been answered twice yet."
    return f"Consistency: repeated questions got the same answer in {_share(of.consistency)}."


def _agreement(of: Standing) -> str:
    if of.agreement.share is None:
        return "Agreement: no two people have answered the same question yet."
    return f"Agreement: two people who answered the same question agreed in {_share(of.agreement)}."


def _foreseen(of: Standing) -> str:
    if of.foreseen.share is None:
        return "Prediction: one question in five is random; none of those has been answered yet."
    return (
        f"Prediction: on random questions, the model in use at the time gave the same answer in {_share(of.foreseen)}."
    )


# --- what can be done with them -------------------------------------------------------------------


def _uses(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    n_sure = sum(answer.chosen is not None for answer in answers)
    is_owner = not is_public()
    if is_owner and st.button(
        "Train on these answers", icon=":material/school:", key="compare_train", disabled=not n_sure,
        help="Opens the Train page with answers chosen as the source of similarity. About 50 are enough "
        "to start.",
    ):  # fmt: skip
        learn_from("answers")
        st.switch_page(PAGES["train"])
    with st.container(horizontal=True):
        st.download_button(
            "Export", lambda: _as_csv(library), f"answers {library.name}.csv", "text/csv",
            key="compare_export", icon=":material/download:", on_click="ignore", disabled=not answers,
            help="All answers as CSV. Any library with the same songs can import them.",
        )  # fmt: skip
        if not is_owner:
            return
        with st.popover("Import", icon=":material/upload:"):
            _import(library)
        with st.popover("Rename or delete listener", icon=":material/manage_accounts:", disabled=not listener):
            _people(library, answers, listener)


def _as_csv(library: Library) -> bytes:
    text = io.BytesIO()
    export_answers(library, text, of=opinions(library))
    return text.getvalue()


def _import(library: Library) -> None:
    sent = st.file_uploader(
        "Answers as CSV", ["csv"], key=f"compare_import_{_ROUND.get()}",
        help="A file that was exported here, or rows of song1, song2, song3, picked_song: names of files.",
    )  # fmt: skip
    st.button(
        "Import", key="compare_take", icon=":material/download_done:", disabled=sent is None,
        on_click=_take, args=(library, sent),
    )  # fmt: skip
    told = _IMPORTED.get()
    if told is None or told[0] != library.folder:
        return
    if isinstance(told[1], str):
        st.error(plain(told[1]), icon=":material/error:")
    else:
        _report(told[1])


def _take(library: Library, sent: BinaryIO) -> None:
    try:
        _IMPORTED.set((library.folder, import_answers(library, sent)))
    except (MusicsimError, ValueError) as error:
        _IMPORTED.set((library.folder, str(error)))
    _ROUND.set(_ROUND.get() + 1)


def _report(report: AnswersImport) -> None:
    facts = [f"{report.n_added:,} added"]
    facts += [f"{report.n_known:,} already here"] if report.n_known else []
    facts += [f"{report.n_unmatched:,} about songs not in this library"] if report.n_unmatched else []
    n_wrong = report.n_read - report.n_added - report.n_known - report.n_unmatched
    facts += [f"{n_wrong:,} left out"] if n_wrong else []
    show = st.success if report.n_added or report.n_known else st.warning
    show(f"{_counted(report.n_read, 'answer')} read: {', '.join(facts)}.")
    if report.problems:
        lines = [f"- {plain(problem)}" for problem in report.problems[:_LISTED]]
        lines += [f"- and {len(report.problems) - _LISTED:,} more"] if len(report.problems) > _LISTED else []
        st.caption("\n".join(lines))


def _people(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    n = sum(answer.listener == listener for answer in answers)
    st.text_input("New name", key="compare_rename", placeholder=listener, max_chars=60)
    st.button(
        "Rename", key="compare_rename_now", icon=":material/edit:", on_click=_rename, args=(library, listener),
        disabled=not n,
    )  # fmt: skip
    st.divider()
    st.markdown(
        f"Delete {_counted(n, 'answer')} of **{plain(listener)}**? This can't be undone; export them "
        "first if you want to keep them."
    )
    st.button(
        "Delete them", key="compare_forget", icon=":material/delete:", on_click=_forget, args=(library, listener),
        disabled=not n,
    )  # fmt: skip


def _rename(library: Library, listener: str) -> None:
    new = who(st.session_state["compare_rename"])
    if new and new != listener:
        rename(library, listener, new)
        st.session_state["compare_rename"] = ""


def _forget(library: Library, listener: str) -> None:
    n = library.judgments.forget_listener(listener)
    st.toast(f"{_counted(n, 'answer')} deleted.", icon=":material/delete:")
