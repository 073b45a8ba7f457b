"""Listening tests: several people grade the results of several models without knowing which model found them."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="listening_tests",
    sections=(
        Section(
            "research",
            "page:draw",
            title="Listening tests",
            tab="tests",
            place=50,
            about="Several people grade pairs of songs, without names.",
        ),
    ),
    routes="routes:listen_routes",
    tables="store",
)
