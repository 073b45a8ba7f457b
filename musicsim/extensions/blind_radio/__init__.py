"""Blind radio: two models take turns in the endless queue, and the listener's skips decide which one is better."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="blind_radio",
    commands={
        "radio": Command(
            "cli:group", "Let two models take turns in the queue, to find out which is better.", "Research"
        )
    },
    sections=(
        Section(
            "research",
            "page:draw",
            title="Blind radio",
            tab="radio",
            group="More measurements",
            place=25,
            about="Two models take turns in the queue, without their names.",
        ),
    ),
    tables="store",
    hooks={"next_songs": "turns:next_songs"},
)
