"""One dot per table: its fill and its color say how many of the table's claims hold; screen readers get words."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from musicsim.extensions.paper_tables.papers import Entry, State
from musicsim.wording import count

# Okabe and Ito's blue and vermilion, which all kinds of color vision tell apart; the fill says the same without color.
_BLUE, _VERMILION, _GRAY = "#0072b2", "#d55e00", "#8a8f98"
_STYLES: dict[State, str] = {
    "all": f"background:{_BLUE};border:2px solid {_BLUE}",
    "some": f"background:linear-gradient(90deg,{_VERMILION} 50%,transparent 50%);border:2px solid {_VERMILION}",
    "none": f"border:2px solid {_VERMILION}",
    "no result": f"border:2px dotted {_GRAY}",
}
_WORDS: dict[State, str] = {
    "all": "all claims hold", "some": "some hold", "none": "none holds", "no result": "no result yet",
}  # fmt: skip
_DOT = "display:inline-block;width:12px;height:12px;border-radius:50%;margin-right:4px;vertical-align:middle"


def draw_dots(entries: Sequence[Entry]) -> str:
    """Return the dots as HTML, best first, with the title of its table on each, and their numbers in words."""
    ordered = [entry for state in _STYLES for entry in entries if entry.state == state]
    n_of = Counter(entry.state for entry in entries)
    words = "; ".join(f"{_WORDS[state]} in {n_of[state]}" for state in _STYLES if n_of[state])
    dots = "".join(_dot(entry.state, f"{entry.title}: {entry.verdict}") for entry in ordered)
    return f'<span role="img" aria-label="{count(len(entries), "table")}: {words}">{dots}</span>'


def draw_legend(entries: Sequence[Entry]) -> str:
    """Return a line of HTML that explains the dots of these entries."""
    states = {entry.state for entry in entries}
    parts = ["Tables:"]
    parts += [f"<span>{_dot(state)}{words}</span>" for state, words in _WORDS.items() if state in states]
    return f'<div style="display:flex;flex-wrap:wrap;gap:0 1rem;font-size:.875rem">{"".join(parts)}</div>'


def _dot(state: State, title: str = "") -> str:
    attribute = f'title="{escape(title)}"' if title else 'aria-hidden="true"'
    return f'<span {attribute} style="{_DOT};{_STYLES[state]}"></span>'
