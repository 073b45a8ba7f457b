"""The result of training on answers, in Compare: its start, one sentence with two bars, and the next step."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from musicsim.explorer import BETTER, LEARNED_KIND, Lead, jobs
from musicsim.explorer.refresh.model_text import agreement, agreement_words, name_for, plain_verdict, report_of
from musicsim.explorer.requests.training import ANSWERS, ANSWERS_PER_STAGE, LearningSettings
from musicsim.library import Judgment, Library, ModelRecord
from musicsim.ui.base import Key, off_if, plain
from musicsim.ui.components import BUSY, start_job, use_button
from musicsim.ui.components.jobs_view import latest_training, watch_training

_SEEN: Key[str] = Key("compare_seen", str, "id of the model whose verdict the listener has closed", per_library=True)


def show_learned(library: Library, answers: Sequence[Judgment], listener: str) -> None:
    """Show what the latest training on a listener's answers learned, or offer a training after enough answers."""
    job = latest_training(library)
    if job is not None and job.arguments["settings"]["supervision"] == ANSWERS and job.state != "done":
        if job.is_active:
            watch_training(library, job)
            return
        if job.state == "failed":
            st.error(plain(job.message), icon=":material/error:")
    whose = listener if len({answer.listener for answer in answers}) > 1 else ""
    n = sum(answer.chosen is not None and answer.listener == listener for answer in answers)
    record, report = _latest(library, whose)
    if n - (report["answers"]["n"] if report else 0) >= ANSWERS_PER_STAGE:
        st.button(
            f"See what {n:,} answers teach", type="primary", icon=":material/school:", key="compare_train",
            on_click=_start, args=(library, whose), **off_if(jobs.current(library) is not None, BUSY),
        )  # fmt: skip
    elif record is not None and record.id != _SEEN.get():
        _show_verdict(library, record, report, n)


def _latest(library: Library, listener: str) -> tuple[ModelRecord | None, dict[str, Any]]:
    """Return the newest model that was trained on this listener's answers, or on everybody's, and its report."""
    for record in reversed(library.models.all()):
        settings = record.settings if record.kind == LEARNED_KIND else {}
        if settings.get("supervision") == ANSWERS and settings.get("listener", "") == listener:
            report = report_of(library, record)
            if report:
                return record, report
    return None, {}


def _start(library: Library, listener: str) -> None:
    settings = LearningSettings(supervision=ANSWERS, listener=listener)
    start_job(library, "train", name=name_for(library, ANSWERS), settings=asdict(settings), use=False)


def _show_verdict(library: Library, record: ModelRecord, report: dict[str, Any], n_answers: int) -> None:
    outcome, sentence = plain_verdict(report, n_answers)
    lead = agreement(report)
    is_recommended = outcome == BETTER and not record.is_active
    with st.container(border=True):
        st.markdown(f"**{agreement_words(lead)}**" if lead else plain(sentence))
        if lead is not None:
            _show_bars(lead)
            if outcome != BETTER:
                st.caption(plain(sentence))
        with st.container(horizontal=True):
            use_button(library, record, where="compare", is_primary=is_recommended)
            st.button(
                "Keep asking", key="compare_go_on", icon=":material/arrow_forward:", on_click=_SEEN.set,
                args=(record.id,), type="secondary" if is_recommended else "primary",
            )  # fmt: skip


def _show_bars(lead: Lead) -> None:
    st.progress(lead.after, text=f"Now: {100 * lead.after:.0f} of 100")
    st.progress(lead.before, text=f"Before: {100 * lead.before:.0f} of 100")
