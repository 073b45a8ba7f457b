"""Other teachers: what each kind of data would teach, in one line, and what it has taught."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import streamlit as st

from musicsim.explorer import BETTER, LEARNED_KIND, TRAINING_KINDS, LearningSettings, Snapshot, jobs
from musicsim.explorer.learning.supervision import Coverage, rank_kinds
from musicsim.explorer.refresh.model_text import name_for, plain_verdict, report_of
from musicsim.explorer.requests.training import ANSWERS
from musicsim.library import Library, ModelRecord
from musicsim.ui.base import AT_ONCE_S, PAGES, off_if, plain, toast_errors, value_of, wait_for
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.components import BUSY, ask_coverage, use_button
from musicsim.wording import capitalize, count


def show_teachers(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a line per kind of data except answers, and a button that measures them; `snapshot` uses Sound."""
    task = ask_coverage(snapshot)
    task.wait(AT_ONCE_S)
    wait_for([task])
    covered: list[Coverage] | None = value_of(task)
    if covered is None:
        return
    library = snapshot.library
    enough = [c for c in rank_kinds(covered) if c.kind != ANSWERS]
    measured = _measured(library)
    unknown = [c.kind for c in enough if c.kind not in measured]
    if enough:
        st.caption(
            "Each of these knows which songs are similar. *Measure* learns from some artists, and asks about others."
        )
    else:
        st.info(
            "This library has no data about similar songs yet. Import plays, tags or playlists, or add more songs.",
            icon=":material/info:",
        )
    n_answers = library.judgments.count()
    failed = _failed(library)
    for each in enough:
        _show_teacher(library, each, measured.get(each.kind), has_failed=each.kind in failed, n_answers=n_answers)
    if unknown:
        st.button(
            "Measure", type="primary", icon=":material/speed:", key="teachers_measure", on_click=_measure,
            args=(library, unknown), **off_if(busy, BUSY),
        )  # fmt: skip
    _show_lacking([c for c in covered if c.lacks and c.kind != ANSWERS])


def _measured(library: Library) -> dict[str, tuple[ModelRecord, dict[str, Any]]]:
    """Return the newest trained model of each kind of data, with its report."""
    learned = [record for record in library.models.all() if record.kind == LEARNED_KIND]
    reports = ((record, report_of(library, record)) for record in learned)
    return {record.settings["supervision"]: (record, report) for record, report in reports if report}


def _failed(library: Library) -> set[str]:
    """Return the kinds of data on which the last training has failed."""
    last: dict[str, str] = {}
    for job in library.jobs.recent(kind="train"):
        last.setdefault(job.arguments["settings"]["supervision"], job.state)
    return {kind for kind, state in last.items() if state == "failed"}


def _show_teacher(
    library: Library,
    covered: Coverage,
    measured: tuple[ModelRecord, dict[str, Any]] | None,
    *,
    has_failed: bool,
    n_answers: int,
) -> None:
    kind, is_better = TRAINING_KINDS[covered.kind], False
    result = "Not measured yet."
    if measured is not None:
        outcome, sentence = plain_verdict(measured[1], n_answers)
        result, is_better = plain(sentence), outcome == BETTER
    elif has_failed:
        result = f"{kind.model_name} could not be measured: *Details* say why. Your answers in *Compare* also teach."
    with st.container(horizontal=True, vertical_alignment="center"):
        about = f"**{kind.model_name}** · {kind.words}, {count(covered.n_songs, 'song')}"
        st.markdown(f"{about}  \n{result}", width="stretch")
        if measured is not None and is_better:
            use_button(library, measured[0], where="teacher", is_primary=not measured[0].is_active)


def _measure(library: Library, kinds: Sequence[str]) -> None:
    """Train on each kind of data with the quick method, in one job after the other."""
    with toast_errors():
        for kind in kinds:
            settings = LearningSettings(supervision=kind, quick=True)
            arguments = {"name": name_for(library, kind), "settings": asdict(settings), "use": False}
            jobs.start(library, "train", arguments)


def _show_lacking(lacking: Sequence[Coverage]) -> None:
    """Show the kinds of data that the library does not have, and a button to import some."""
    if not lacking:
        return
    names = ", ".join(TRAINING_KINDS[c.kind].model_name.lower() for c in lacking)
    reasons = "\n".join(f"- {capitalize(TRAINING_KINDS[c.kind].words)}: {plain(c.lacks)}" for c in lacking)
    st.caption(f"{len(lacking)} more {'needs' if len(lacking) == 1 else 'need'} data: {names}.", help=reasons)
    if st.button("Import plays, tags or playlists", icon=":material/upload:", type="tertiary"):
        SECTIONS["library"].set("listening")
        st.switch_page(PAGES["library"])
