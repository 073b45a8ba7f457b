"""The tables of one paper with our numbers on the Research page, and a button to start each experiment's short run."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import Snapshot, jobs
from musicsim.extensions.paper_tables import paper_tables
from musicsim.extensions.paper_tables.papers import BEYOND, PAPERS, Entry, entries_of, summarize
from musicsim.library import Library
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import plain
from musicsim.ui.components import job_panel, start_job, table_download
from musicsim.wording import capitalize, clean

_MAX_LISTED = 3  # maximum number of failed claims in the list above the tables
_OF_PAPER = re.compile(r" \((?:the )?(thesis|paper): ([^)]*)\)")
_BEYOND = "These experiments test the app and its own methods. None of the papers has them, so the goals are our own."
_ICONS = {
    "all": ":blue[:material/check_circle:]",
    "some": ":orange[:material/contrast:]",
    "none": ":orange[:material/radio_button_unchecked:]",
    "no result": ":gray[:material/hourglass_empty:]",
}


def _page_of(key: str) -> Callable[..., None]:
    """Return the function that draws the tables of a paper."""

    @visitor_may
    def draw(snapshot: Snapshot, /, *, busy: bool) -> None:
        _draw(snapshot.library, key)

    return draw


thesis = _page_of("thesis")
icml2010 = _page_of("icml2010")
sigir2017 = _page_of("sigir2017")
www2012 = _page_of("www2012")
beyond = _page_of(BEYOND)


def _draw(library: Library, key: str) -> None:
    """Draw a summary, and one expander per table; the largest share of failed claims comes first."""
    st.markdown(PAPERS[key].citation if key in PAPERS else _BEYOND)
    entries = entries_of(key)
    if not entries:
        st.info(
            "The installed package does not include the experiments. Clone the repository to see the papers' tables "
            "next to our numbers.", icon=":material/info:",
        )  # fmt: skip
        return
    st.markdown(
        f"**{summarize(entries)}.** A claim is a result that we expect to find again, on our own data. Open a table to "
        "read which claims fail, and by how much. Tables with most failures come first."
    )
    with st.container(gap="xsmall"):
        for entry in entries:
            _show_entry(library, entry)


def _show_entry(library: Library, entry: Entry) -> None:
    label = f"{_ICONS[entry.state]} **{plain(entry.title)}**: {entry.verdict}"
    expander = st.expander(label, key=f"paper_{entry.name}", on_change="rerun")
    if not expander.open:
        return
    with expander:
        if entry.sentence:
            st.markdown(plain(entry.sentence))
        if entry.table is None:
            st.info("This experiment has no result yet.", icon=":material/info:")
        else:
            _show_table(entry.table)
        if not is_public():
            _short_run(library, entry.name)


def _short_run(library: Library, name: str) -> None:
    st.button(
        "Start the short run", icon=":material/science:", key=f"evaluate_run_{name}",
        on_click=start_job, args=(library, "experiment"), kwargs={"name": name},
        help="Takes seconds to 20 minutes on two cores (real_learning: an hour). The result stays on this machine.",
    )  # fmt: skip
    job = jobs.current(library)
    if job is not None and job.kind == "experiment" and job.arguments.get("name") == name:
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
        _explain_failures(table)
    tables = [(rows, paper_tables.order_columns(rows)) for rows in paper_tables.split_tables(table.rows)]
    for number, (rows, columns) in enumerate(tables):
        frame = pd.DataFrame([{name: _cell(row, name, spread) for name, spread in columns} for row in rows])
        st.dataframe(frame, hide_index=True)
        table_download("experiment", partial(pd.DataFrame, frame), f"evaluate_paper_{table.name}_{number}")
    if any(spread for _, columns in tables for _, spread in columns):
        st.caption(
            "± is the standard deviation across runs (splits or codebooks). *Varies widely* marks means that are "
            "smaller than their deviation, so the runs have no typical value."
        )
    st.caption(plain(" · ".join(facts)))
    if table.claims:
        with st.popover("All claims", icon=":material/checklist:"):
            _show_claims(table.claims)
    with st.popover("Machine and settings", icon=":material/memory:"):
        parts = {**settings, **machine, **{f"SHA-256 of {name}": digest for name, digest in table.inputs.items()}}
        st.table(pd.DataFrame({"": [plain(_text(value)) for value in parts.values()]}, index=map(plain, parts)))


def _explain_failures(table: paper_tables.PaperTable) -> None:
    """Say in words what the failed claims expect and what we measured: first the papers' claims, then our own goals."""
    failed = [claim for claim in table.claims if not claim["holds"]]
    if not failed:
        return
    failed.sort(key=lambda claim: not any(paper in str(claim["claim"]) for paper in paper_tables.PAPERS))
    lines = [_explain(claim) for claim in failed[:_MAX_LISTED]]
    n_more = len(failed) - _MAX_LISTED
    lines += [f"- and {n_more} more, under *All claims*"] if n_more > 0 else []
    st.markdown(f"**{_count_failed(len(failed))}:**\n\n" + "\n".join(lines))
    page = paper_tables.find_page(table.name)
    if page:
        st.markdown(f"`{page}` discusses this table.")


def _count_failed(n: int) -> str:
    return "One claim does not hold" if n == 1 else f"{n} claims do not hold"


def _explain(claim: paper_tables.Row) -> str:
    words, kind, result = _split_claim(claim)
    said = f" (the {kind} found {result})" if kind else ""
    return (
        f"- {plain(capitalize(words))}. **Expected:** {plain(_goal(claim) + said)}. "
        f"**Measured:** {plain(_text(claim['value']))}."
    )


def _show_claims(claims: Sequence[paper_tables.Row]) -> None:
    cells = [
        (clean(words), clean(result), _goal(claim), _text(claim["value"]), "yes" if claim["holds"] else "no")
        for claim in claims
        for words, _, result in [_split_claim(claim)]
    ]
    columns = ["claim", "paper", "expected", "measured", "holds"]
    wide = {"claim": st.column_config.TextColumn(width="large")}
    st.dataframe(pd.DataFrame(cells, columns=columns), hide_index=True, column_config=wide)


def _split_claim(claim: paper_tables.Row) -> tuple[str, str, str]:
    """Split a claim into its text, “thesis” or “paper”, and their result; both are "" if the text has no result."""
    words = str(claim["claim"])
    found = _OF_PAPER.search(words)
    return (words.replace(found[0], ""), found[1], found[2]) if found else (words, "", "")


def _goal(claim: paper_tables.Row) -> str:
    """Return the goal with “at least” or “at most”, depending on the value and whether the claim holds."""
    value, goal = claim["value"], claim["goal"]
    if isinstance(goal, bool) or not isinstance(value, int | float) or not isinstance(goal, int | float):
        return _text(goal)
    if value == goal:
        return _text(goal)
    return f"at {'least' if (value > goal) == bool(claim['holds']) else 'most'} {_text(goal)}"


def _cell(row: paper_tables.Row, name: str, spread: str | None) -> str:
    value = row.get(name)
    if value is None:
        return ""
    deviation = row.get(spread) if spread else None
    if not deviation:
        return _text(value)
    is_wide = isinstance(value, int | float) and deviation > abs(value)
    return (
        f"{_text(value)}, varies widely (± {_text(deviation)})" if is_wide else f"{_text(value)} ± {_text(deviation)}"
    )


def _text(value: Any) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
