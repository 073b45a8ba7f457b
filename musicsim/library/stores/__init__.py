"""One module per group of tables: files, frames, models, plays, answers, jobs."""
