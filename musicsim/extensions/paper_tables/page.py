"""The papers' tables with our numbers beside theirs, and a button for the short run of each."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.paper_tables.paper_tables import (
    PAPERS,
    PaperTable,
    Row,
    experiments,
    load_table,
    ordered_columns,
    parted,
)
from musicsim.library import Library
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.jobs_view import job_panel, start_job
from musicsim.ui.components.table_download import table_download

_NAMED = 3
"""Claims that do not hold, in the sentence before the tables."""


@visitor_may
def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """The papers' tables with our numbers, and the short run of each."""
    library = snapshot.library
    names = {experiment.name: experiment.title for experiment in experiments()}
    if not names:
        st.info(
            "The experiments are not part of an installed package: clone the repository to see the papers' tables "
            "beside our numbers.", icon=":material/info:",
        )  # fmt: skip
        return
    tables = {name: load_table(name) for name in names}
    first = next((name for name, table in tables.items() if table), next(iter(names)))
    name = st.pills("Experiment", list(names), default=first, key="evaluate_experiment") or first
    st.markdown(f"**{plain(names[name])}**")
    table = tables[name]
    if table is None:
        st.info("There is no result of this experiment yet.", icon=":material/info:")
    else:
        _show_table(table)
    if not is_public():
        _short_run(library, name)


def _short_run(library: Library, name: str) -> None:
    job = jobs.current(library)
    st.button(
        "Start the short run", icon=":material/science:", key="evaluate_run", disabled=job is not None,
        on_click=start_job, args=(library, "experiment"), kwargs={"name": name},
        help="Seconds to some twenty minutes on two cores, real_music an hour; the result stays on this machine.",
    )  # fmt: skip
    if job is None or job.kind != "experiment":
        return

    @st.fragment(run_every=1.0)
    def panel() -> None:
        running = jobs.current(library)
        if running is None or running.id != job.id:
            st.rerun()
        job_panel(library, running)

    panel()


def _show_table(table: PaperTable) -> None:
    machine, settings = table.machine, table.settings
    where = "on this machine" if table.is_own else "shipped with the program"
    is_full = settings.get("protocol") == "full"
    facts = [f"{table.date[:10]}, {where}"]
    facts += ["full protocol" if is_full else "short protocol; the full one has not been run"]
    facts += [f"{settings['splits']} splits"] if isinstance(settings.get("splits"), int) else []
    facts += [f"{settings['seconds']:,.0f} s"] if "seconds" in settings else []
    facts.append(f"commit {table.commit or 'not recorded'}")
    facts += [f"{machine.get('cores')} cores, {machine.get('cpu')}"]
    if table.claims:
        st.markdown(_verdict(table.claims))
    st.caption(plain(" · ".join(facts)))
    for number, rows in enumerate(parted(table.rows)):
        columns = ordered_columns(rows)
        frame = pd.DataFrame([{name: _cell(row, name, spread) for name, spread in columns} for row in rows])
        st.dataframe(frame, hide_index=True)
        table_download("experiment", partial(pd.DataFrame, frame), f"evaluate_paper_{number}")
    if any(spread for rows in parted(table.rows) for _, spread in ordered_columns(rows)):
        st.caption("± is the standard deviation across runs (splits or codebooks).")
    if table.claims:
        st.dataframe(
            pd.DataFrame(
                {
                    "holds": [bool(claim["holds"]) for claim in table.claims],
                    "claim": [shown(claim["claim"]) for claim in table.claims],
                    "ours": [_text(claim["value"]) for claim in table.claims],
                    "goal": [_text(claim["goal"]) for claim in table.claims],
                }
            ),
            hide_index=True,
            column_config={"holds": st.column_config.CheckboxColumn(width=56)},
        )
    with st.expander("Machine and settings"):
        parts = {**settings, **machine, **{f"SHA-256 of {name}": digest for name, digest in table.inputs.items()}}
        st.table(pd.DataFrame({"": [plain(_text(value)) for value in parts.values()]}, index=map(plain, parts)))


def _verdict(claims: Sequence[Row]) -> str:
    """A sentence on what does not hold here, orders of the papers before goals of ours."""
    failed = [claim for claim in claims if not claim["holds"]]
    if not failed:
        return f"**All {len(claims)} claims hold.**"
    failed.sort(key=lambda claim: not any(paper in str(claim["claim"]) for paper in PAPERS))
    named = [
        plain(f"{claim['claim']} ({_text(claim['value'])}, goal {_text(claim['goal'])})") for claim in failed[:_NAMED]
    ]
    named += [f"{len(failed) - _NAMED} more below the tables"] if len(failed) > _NAMED else []
    return f"**{len(failed)} of {len(claims)} claims do not hold here:** {'; '.join(named)}."


def _cell(row: Any, name: str, spread: str | None) -> str:
    value = row.get(name)
    if value is None:
        return ""
    wide = row.get(spread) if spread else None
    return f"{_text(value)} ± {_text(wide)}" if wide else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
