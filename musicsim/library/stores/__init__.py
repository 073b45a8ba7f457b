"""One file a group of tables: files, frames, models, plays, answers, jobs.

May use db; knows neither scan nor importing.
"""
