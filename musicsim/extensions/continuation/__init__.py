"""Evaluation of playlists: how well each method continues lists of which the end is held out."""

from musicsim.hooks import Extension, Job, Section

EXTENSION = Extension(
    name="continuation",
    command_options={"evaluate": "cli:evaluate_options"},
    jobs={"continue": Job("job:run", "Continuing held-out lists", counts="continuations")},
    sections=(Section("evaluate", "Playlists", "page:draw", place=30),),
)
