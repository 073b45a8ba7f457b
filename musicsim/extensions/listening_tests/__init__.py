"""Listening tests by link: several models' results, judged blind by other people."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="listening_tests",
    sections=(Section("compare", "Listening tests", "page:draw", place=20),),
    routes="routes:listen_routes",
    tables="tables",
    hooks={"renew_tokens": "restored:renew_tokens"},
)
