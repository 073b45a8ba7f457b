"""The survey so far: progress, quality of the answers, export and import."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import summarize_answers
from musicsim.explorer.requests.training import ANSWERS_PER_STAGE
from musicsim.explorer.survey.questions import AnswerSummary
from musicsim.library import Judgment, Library
from musicsim.library.importing.answers import AnswersImport, export_answers, import_answers
from musicsim.public import is_public
from musicsim.ui.base import Key, download, off_if, opinions, plain
from musicsim.ui.compare.session import clean_name, rename
from musicsim.wording import count

_MAX_LISTED = 20


@dataclass(frozen=True, slots=True)
class _Imported:
    """The last import's library folder and report or error, and the number of imports: each empties the upload box."""

    library: Path | None = None
    result: AnswersImport | str = ""
    round: int = 0


_IMPORTED: Key[_Imported] = Key("compare_imported", _Imported, "the last import of answers")


def show_progress(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    """Show the number of answers, of this listener or of all people, and how many complete the current stage."""
    standing = _summarize(library, answers, listener or None)
    n, name = standing.n_answers, plain(listener) if listener else "Everybody"
    goal = max(1, -(-n // ANSWERS_PER_STAGE)) * ANSWERS_PER_STAGE
    unsure = f", {standing.n_unsure:,} of them unsure" if standing.n_unsure else ""
    st.progress(1 - (goal - n) / ANSWERS_PER_STAGE, text=f"**{name}**: {n:,} of {goal:,} answers{unsure}")


def show_survey(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    """Show the quality of all answers and, if `listener` is not empty, of this listener's; offer actions on them."""
    with st.expander("Your answers", icon=":material/fact_check:", key="compare_answers"):
        _show_quality(library, answers, listener)
        _show_actions(library, answers, listener)


@st.cache_data(max_entries=16, show_spinner=False)
def _standing(version: tuple[Any, ...], listener: str | None, _answers: Sequence[Judgment]) -> AnswerSummary:
    return summarize_answers(_answers, listener)


def _summarize(library: Library, answers: Sequence[Judgment], listener: str | None) -> AnswerSummary:
    # ids are never reused, but the listener of an answer can change
    last_id = max((answer.id for answer in answers), default=0)
    version = (library.folder, len(answers), last_id, hash(tuple(answer.listener for answer in answers)))
    return _standing(version, listener, answers)


def _show_quality(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    everybody = _summarize(library, answers, None)
    mine = _summarize(library, answers, listener or None)
    st.markdown(f"- {_consistency(mine)}\n- {_prediction(mine)}")
    if everybody.n_listeners > 1:
        people = f"{everybody.n_listeners:,} people gave {count(everybody.n_answers, 'answer')}."
        agreement = "Agreement: not known until two people answer the same question."
        if everybody.agreement.share is not None:
            rate = everybody.agreement.describe(with_chance=True)
            agreement = f"Agreement: two people who answered the same question agreed in {rate}."
        st.markdown(
            f"**All together**: {people}\n- {_consistency(everybody)}\n- {agreement}\n- {_prediction(everybody)}"
        )
    else:
        st.caption("Agreement appears here once a second person has answered.")


def _consistency(standing: AnswerSummary) -> str:
    if standing.consistency.share is None:
        return "Consistency: not known until a repeated question (one in ten) is answered."
    return f"Consistency: repeated questions got the same answer in {standing.consistency.describe(with_chance=True)}."


def _prediction(standing: AnswerSummary) -> str:
    if standing.predicted.share is None:
        return "Prediction: not known until a random question (one in five) is answered."
    rate = standing.predicted.describe(with_chance=True)
    return f"Prediction: on random questions, the model in use at the time gave the same answer in {rate}."


def _show_actions(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    is_owner = not is_public()
    theirs = opinions(library)  # here, because the file is made without the session

    def content() -> bytes:
        text = io.BytesIO()
        export_answers(library, text, opinions=theirs)
        return text.getvalue()

    with st.container(horizontal=True):
        download(
            "Export", content, f"answers {library.name}.csv", "text/csv", key="compare_export",
            **off_if(
                not answers, "There are no answers yet.",
                "Download all answers as CSV. Any library with the same songs can import them.",
            ),
        )  # fmt: skip
        if is_owner:
            with st.popover("Import", icon=":material/upload:"):
                _show_import(library)
            is_off = off_if(not listener, "Enter the listener's name first.")
            with st.popover("Rename or delete listener", icon=":material/manage_accounts:", **is_off):
                _show_listener(library, answers, listener)


def _show_import(library: Library) -> None:
    last = _IMPORTED.get()
    sent = st.file_uploader(
        "Answers as CSV", ["csv"], key=f"compare_import_{last.round}",
        help="A file exported from this page, file names in the columns song1, song2, song3 and picked_song, or the "
        "votes in MagnaTagATune or dim-sim.",
    )  # fmt: skip

    def take() -> None:
        assert sent is not None  # otherwise the button is disabled
        try:
            result: AnswersImport | str = import_answers(library, sent)
        except (MusicsimError, ValueError) as error:
            result = str(error)
        _IMPORTED.set(_Imported(library.folder, result, last.round + 1))

    is_off = off_if(sent is None, "Choose a file first.")
    st.button("Import", key="compare_take", icon=":material/download_done:", on_click=take, **is_off)
    if last.library != library.folder:
        return
    if isinstance(last.result, str):
        st.error(plain(last.result), icon=":material/error:")
    else:
        _show_report(last.result)


def _show_report(report: AnswersImport) -> None:
    facts = [f"{report.n_added:,} added"]
    facts += [f"{report.n_known:,} already here"] if report.n_known else []
    facts += [f"{report.n_unmatched:,} about songs not in this library"] if report.n_unmatched else []
    n_invalid = report.n_read - report.n_added - report.n_known - report.n_unmatched
    facts += [f"{n_invalid:,} invalid"] if n_invalid else []
    show = st.success if report.n_added or report.n_known else st.warning
    show(f"{count(report.n_read, 'answer')} read: {', '.join(facts)}.")
    if report.comparisons is not None:
        st.caption(f"{report.comparisons}.")
    if report.problems:
        lines = [f"- {plain(problem)}" for problem in report.problems[:_MAX_LISTED]]
        lines += [f"- and {len(report.problems) - _MAX_LISTED:,} more"] if len(report.problems) > _MAX_LISTED else []
        st.caption("\n".join(lines))


def _show_listener(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    n = sum(answer.listener == listener for answer in answers)

    def change_name() -> None:
        name = clean_name(st.session_state["compare_rename"])
        if name and name != listener:
            rename(library, listener, name)
            st.session_state["compare_rename"] = ""

    def delete() -> None:
        n_deleted = library.judgments.forget_listener(listener)
        st.toast(f"{count(n_deleted, 'answer')} deleted.", icon=":material/delete:")

    st.text_input("New name", key="compare_rename", placeholder=listener, max_chars=60)
    is_off = off_if(not n, "This listener has no answers.")
    st.button("Rename", key="compare_rename_now", icon=":material/edit:", on_click=change_name, **is_off)
    st.divider()
    st.markdown(
        f"Delete {count(n, 'answer')} from **{plain(listener)}**? This can't be undone. To keep a copy, export "
        "the answers first."
    )
    st.button("Delete answers", key="compare_forget", icon=":material/delete:", on_click=delete, **is_off)
