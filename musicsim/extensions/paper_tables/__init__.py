"""The papers' tables, with our results next to the printed ones."""

from musicsim.hooks import Extension, JobKind, Section

_TITLES = {
    "thesis": "More like this (thesis, 2012)",
    "icml2010": "Metric learning to rank (ICML 2010)",
    "sigir2017": "Local geometric mean metrics (SIGIR 2017)",
    "www2012": "Task-specific bit vectors (WWW 2012)",
    "beyond": "Beyond the papers",
}

EXTENSION = Extension(
    name="paper_tables",
    jobs={"experiment": JobKind("paper_tables:run_job", "Running an experiment")},
    sections=tuple(
        Section(
            "research",
            f"page:{name}",
            title=title,
            tab=name,
            group="The papers",
            place=place,
            needs_songs=False,
            summary=f"overview:{name}",
        )
        for place, (name, title) in enumerate(_TITLES.items(), start=1)
    ),
)
