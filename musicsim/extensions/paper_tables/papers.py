"""The papers whose tables the experiments repeat, and a summary of each experiment's claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from musicsim.extensions.paper_tables import paper_tables
from musicsim.wording import capitalize, count

State = Literal["all", "some", "none", "no result"]


@dataclass(frozen=True, slots=True)
class Paper:
    citation: str
    experiments: tuple[str, ...]


PAPERS: Mapping[str, Paper] = {
    "thesis": Paper(
        "B. McFee, *More like this: machine learning approaches to music similarity*, PhD thesis, UC San Diego, 2012.",
        (
            "admm", "annotation", "audio", "codewords", "listeners", "noise", "order_synthetic", "playlists",
            "real_listeners", "spill", "stemming", "subgraphs",
        ),
    ),
    "icml2010": Paper("B. McFee, G. Lanckriet, *Metric learning to rank*, ICML 2010.", ("uci",)),
    "sigir2017": Paper(
        "Y. Su, I. King, M. Lyu, *Learning to rank using localized geometric mean metrics*, SIGIR 2017.",
        ("letor", "local_metrics"),
    ),
    "www2012": Paper(
        "V. Nair, D. Mahajan, S. Sundararajan, *A unified approach to learning task-specific bit vector "
        "representations for fast nearest neighbor search*, WWW 2012.",
        ("hashing", "hashing_tables"),
    ),
}  # fmt: skip
"""The papers, keyed by the names of their tabs."""
BEYOND = "beyond"
"""Name of the tab with the experiments that are in none of the papers."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An experiment with its result, which is None if it has not run yet."""

    name: str
    title: str
    sentence: str  # "" if the title says it all
    table: paper_tables.PaperTable | None

    @property
    def n_claims(self) -> int:
        return len(self.table.claims) if self.table else 0

    @property
    def n_held(self) -> int:
        return sum(bool(claim["holds"]) for claim in self.table.claims) if self.table else 0

    @property
    def state(self) -> State:
        if not self.n_claims:
            return "no result"
        return "all" if self.n_held == self.n_claims else "some" if self.n_held else "none"

    @property
    def verdict(self) -> str:
        """The number of claims that hold, in words."""
        if self.table is None:
            return "no result yet"
        if not self.n_claims:
            return "no claims"
        return describe_claims(self.n_held, self.n_claims)


def describe_claims(n_held: int, n_claims: int) -> str:
    """Return “4 of 5 claims hold”, with the right verb and without repeated numbers."""
    if n_claims == 1:
        return "its claim holds" if n_held else "its claim does not hold"
    return f"all {n_claims} claims hold" if n_held == n_claims else f"{n_held} of {n_claims} claims hold"


def entries_of(key: str) -> list[Entry]:
    """Return the experiments of a paper, or those of no paper; empty without a checkout.

    The largest share of failed claims comes first; experiments without a result come last.
    """
    titles = paper_tables.experiments()
    listed = {name for paper in PAPERS.values() for name in paper.experiments}
    names = [name for name in titles if (name in PAPERS[key].experiments if key in PAPERS else name not in listed)]
    entries = [Entry(name, *split_title(titles[name]), paper_tables.load_table(name)) for name in names]
    return sorted(entries, key=lambda entry: entry.n_held / entry.n_claims if entry.n_claims else 2)


def split_title(text: str) -> tuple[str, str]:
    """Return an experiment's title and the sentence that follows it, which may be empty."""
    title, _, rest = text.partition(": ")
    return title.removesuffix("."), capitalize(rest)


def summarize(entries: Sequence[Entry]) -> str:
    """Return how many claims of several tables hold."""
    n_held, n_claims = sum(entry.n_held for entry in entries), sum(entry.n_claims for entry in entries)
    in_tables = f"in {count(len(entries), 'table')}"
    return f"{capitalize(describe_claims(n_held, n_claims))} {in_tables}" if n_claims else f"No result yet {in_tables}"
