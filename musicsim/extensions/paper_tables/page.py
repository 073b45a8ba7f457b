"""The papers' tables with our numbers on the Evaluate page, and a button to start each experiment's short run."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.paper_tables import paper_tables
from musicsim.library import Library
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.text import clean, plain
from musicsim.ui.components.downloads import table_download
from musicsim.ui.components.jobs_view import job_panel, start_job

_MAX_LISTED = 3  # maximum number of claims in the sentence above the tables


@visitor_may
def draw(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    names = paper_tables.experiments()
    if not names:
        st.info(
            "The installed package does not include the experiments. Clone the repository to see the papers' tables "
            "next to our numbers.", icon=":material/info:",
        )  # fmt: skip
        return
    tables = {name: paper_tables.load_table(name) for name in names}
    first = next((name for name, table in tables.items() if table), next(iter(names)))
    name = st.pills("Experiment", list(names), default=first, key="evaluate_experiment") or first
    st.markdown(f"**{plain(names[name])}**")
    table = tables[name]
    if table is None:
        st.info("This experiment has no result yet.", icon=":material/info:")
    else:
        _show_table(table)
    if not is_public():
        _short_run(library, name)


def _short_run(library: Library, name: str) -> None:
    job = jobs.current(library)
    st.button(
        "Start the short run", icon=":material/science:", key="evaluate_run",
        on_click=start_job, args=(library, "experiment"), kwargs={"name": name},
        help="Takes seconds to about 20 minutes on two cores (real_music: an hour). The result stays on this machine.",
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


def _show_table(table: paper_tables.PaperTable) -> None:
    machine, settings = table.machine, table.settings
    origin = "on this machine" if table.is_own else "shipped with the program"
    is_full = settings.get("protocol") == "full"
    facts = [f"{table.date[:10]}, {origin}"]
    facts += ["full protocol" if is_full else "short protocol; the full protocol has not been run"]
    facts += [f"{settings['splits']} splits"] if isinstance(settings.get("splits"), int) else []
    facts += [f"{settings['seconds']:,.0f} s"] if "seconds" in settings else []
    facts.append(f"commit {table.commit or 'not recorded'}")
    facts += [f"{machine.get('cores')} cores, {machine.get('cpu')}"]
    if table.claims:
        st.markdown(_verdict(table.claims))
    st.caption(plain(" · ".join(facts)))
    tables = [(rows, paper_tables.order_columns(rows)) for rows in paper_tables.split_tables(table.rows)]
    for number, (rows, columns) in enumerate(tables):
        frame = pd.DataFrame([{name: _cell(row, name, spread) for name, spread in columns} for row in rows])
        st.dataframe(frame, hide_index=True)
        table_download("experiment", partial(pd.DataFrame, frame), f"evaluate_paper_{number}")
    if any(spread for _, columns in tables for _, spread in columns):
        st.caption("± is the standard deviation across runs (splits or codebooks).")
    if table.claims:
        cells = [(bool(c["holds"]), clean(c["claim"]), _text(c["value"]), _text(c["goal"])) for c in table.claims]
        frame = pd.DataFrame(cells, columns=["holds", "claim", "ours", "goal"])
        st.dataframe(frame, hide_index=True, column_config={"holds": st.column_config.CheckboxColumn(width=56)})
    with st.expander("Machine and settings"):
        parts = {**settings, **machine, **{f"SHA-256 of {name}": digest for name, digest in table.inputs.items()}}
        st.table(pd.DataFrame({"": [plain(_text(value)) for value in parts.values()]}, index=map(plain, parts)))


def _verdict(claims: Sequence[paper_tables.Row]) -> str:
    """Describe the claims that do not hold: first the papers' claims, then our own goals."""
    failed = [claim for claim in claims if not claim["holds"]]
    if not failed:
        return f"**All {len(claims)} claims hold.**"
    failed.sort(key=lambda claim: not any(paper in str(claim["claim"]) for paper in paper_tables.PAPERS))
    texts = [
        plain(f"{claim['claim']} ({_text(claim['value'])}, goal {_text(claim['goal'])})")
        for claim in failed[:_MAX_LISTED]
    ]
    texts += [f"{len(failed) - _MAX_LISTED} more below the tables"] if len(failed) > _MAX_LISTED else []
    return f"**{len(failed)} of {len(claims)} claims do not hold here:** {'; '.join(texts)}."


def _cell(row: paper_tables.Row, name: str, spread: str | None) -> str:
    deviation = f" ± {_text(row[spread])}" if spread and row.get(spread) else ""
    return "" if row.get(name) is None else _text(row[name]) + deviation


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
