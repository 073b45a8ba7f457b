"""Listening tests: several people, each with a link, grade the results of several models blind."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="listening_tests",
    sections=(Section("compare", "Listening tests", "page:draw", place=20),),
    routes="routes:listen_routes",
    tables="store",
    hooks={"renew_tokens": "store:renew_tokens"},
)
