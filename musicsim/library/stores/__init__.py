"""One module per group of tables: files, frames, models, plays, answers, jobs.

May import `db`, but neither `scan` nor `importing`.
"""
