"""The papers' tables with our numbers on the Research page, and a button to start each experiment's short run."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot, jobs
from musicsim.extensions.paper_tables import paper_tables
from musicsim.library import Library
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import plain
from musicsim.ui.components import job_panel, start_job, table_download
from musicsim.wording import capitalize, clean

_MAX_LISTED = 3  # maximum number of claims in the list above the tables
_OF_PAPER = re.compile(r" \((?:the )?(?:thesis|paper): ([^)]*)\)")


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
    name = st.selectbox(
        "Experiment", list(names), list(names).index(first), key="evaluate_experiment", width=720,
        format_func=lambda name: _split(names[name])[0],
    )  # fmt: skip
    title, sentence = _split(names[name])
    st.header(plain(title), anchor=False)
    if sentence:
        st.markdown(plain(sentence))
    table = tables[name]
    if table is None:
        st.info("This experiment has no result yet.", icon=":material/info:")
    else:
        _show_table(table)
    if not is_public():
        _short_run(library, name)


def _split(text: str) -> tuple[str, str]:
    """Return an experiment's title and the sentence that follows it, which may be empty."""
    title, _, rest = text.partition(": ")
    return title.removesuffix("."), capitalize(rest)


def _short_run(library: Library, name: str) -> None:
    st.button(
        "Start the short run", icon=":material/science:", key="evaluate_run",
        on_click=start_job, args=(library, "experiment"), kwargs={"name": name},
        help="Takes seconds to 20 minutes on two cores (real_learning: an hour). The result stays on this machine.",
    )  # fmt: skip
    job = jobs.current(library)
    if job is not None and job.kind == "experiment":
        job_panel(library, job)


def _show_table(table: paper_tables.PaperTable) -> None:
    machine, settings = table.machine, table.settings
    origin = "on this machine" if table.is_own else "shipped with the program"
    facts = [f"{table.date[:10]}, {origin}"]
    facts += [
        "full protocol" if settings.get("protocol") == "full" else f"short form: {paper_tables.short_form(table.name)}"
    ]
    facts += [f"{settings['splits']} splits"] if isinstance(settings.get("splits"), int) else []
    facts += [f"{settings['seconds']:,.0f} s"] if "seconds" in settings else []
    facts.append(f"commit {table.commit or 'not recorded'}")
    facts += [f"{machine.get('cores')} cores, {machine.get('cpu')}"]
    if table.claims:
        st.markdown(_verdict(table.claims))
        _show_claims(table.claims)
    st.caption(plain(" · ".join(facts)))
    tables = [(rows, paper_tables.order_columns(rows)) for rows in paper_tables.split_tables(table.rows)]
    for number, (rows, columns) in enumerate(tables):
        frame = pd.DataFrame([{name: _cell(row, name, spread) for name, spread in columns} for row in rows])
        st.dataframe(frame, hide_index=True)
        table_download("experiment", partial(pd.DataFrame, frame), f"evaluate_paper_{number}")
    if any(spread for _, columns in tables for _, spread in columns):
        st.caption("± is the standard deviation across runs (splits or codebooks).")
    with st.expander("Machine and settings"):
        parts = {**settings, **machine, **{f"SHA-256 of {name}": digest for name, digest in table.inputs.items()}}
        st.table(pd.DataFrame({"": [plain(_text(value)) for value in parts.values()]}, index=map(plain, parts)))


def _verdict(claims: Sequence[paper_tables.Row]) -> str:
    """Count the claims that hold, and list those that do not: first the papers' claims, then our own goals."""
    failed = [claim for claim in claims if not claim["holds"]]
    if not failed:
        return f"**All {len(claims)} claims hold here.**"
    failed.sort(key=lambda claim: not any(paper in str(claim["claim"]) for paper in paper_tables.PAPERS))
    lines = [f"**{len(claims) - len(failed)} of {len(claims)} claims hold here.** These do not:"]
    for claim in failed[:_MAX_LISTED]:
        words, paper = _split_claim(claim)
        said = f"; the paper: {paper}" if paper else ""
        lines.append(f"- {plain(words)}: {_text(claim['value'])} instead of {_goal(claim)}{plain(said)}")
    lines += [f"- and {len(failed) - _MAX_LISTED} more, below"] if len(failed) > _MAX_LISTED else []
    return "\n".join(lines)


def _show_claims(claims: Sequence[paper_tables.Row]) -> None:
    with st.expander("All claims"):
        cells = [
            (clean(words), clean(paper), _goal(claim), _text(claim["value"]), "yes" if claim["holds"] else "no")
            for claim in claims
            for words, paper in [_split_claim(claim)]
        ]
        columns = ["claim", "paper", "goal", "ours", "holds"]
        wide = {"claim": st.column_config.TextColumn(width="large")}
        st.dataframe(pd.DataFrame(cells, columns=columns), hide_index=True, column_config=wide)


def _split_claim(claim: paper_tables.Row) -> tuple[str, str]:
    """Split a claim into its text and the paper's result, which is "" if the text does not contain it."""
    words = str(claim["claim"])
    found = _OF_PAPER.search(words)
    return (words.replace(found[0], ""), found[1]) if found else (words, "")


def _goal(claim: paper_tables.Row) -> str:
    """Return the goal with “at least” or “at most”, depending on the value and whether the claim holds."""
    value, goal = claim["value"], claim["goal"]
    if isinstance(goal, bool) or not isinstance(value, int | float) or not isinstance(goal, int | float):
        return _text(goal)
    if value == goal:
        return _text(goal)
    return f"at {'least' if (value > goal) == bool(claim['holds']) else 'most'} {_text(goal)}"


def _cell(row: paper_tables.Row, name: str, spread: str | None) -> str:
    deviation = f" ± {_text(row[spread])}" if spread and row.get(spread) else ""
    return "" if row.get(name) is None else _text(row[name]) + deviation


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
