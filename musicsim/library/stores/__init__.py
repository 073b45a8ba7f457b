"""One module per group of tables: files, frames, models, plays, answers, jobs.

This package may import `db`, but neither `scan` nor `importing`.
"""
