"""Evaluation of playlists: methods continue lists whose second half is held out."""

from musicsim.hooks import Extension, Job, Section

EXTENSION = Extension(
    name="continuation",
    command_options={"evaluate": "cli:evaluate_options"},
    jobs={"continue": Job("continuation:run_job", "Continuing held-out lists", counts="continuations")},
    sections=(Section("evaluate", "Playlists", "page:draw", place=30),),
)
