"""The papers' tables, with our results next to the printed ones."""

from musicsim.hooks import Extension, JobKind, Section

EXTENSION = Extension(
    name="paper_tables",
    jobs={"experiment": JobKind("paper_tables:run_job", "Running an experiment")},
    sections=(Section("research", "page:draw", title="The papers", tab="papers", place=40, needs_songs=False),),
)
