"""Two ears: where two people's tastes differ, a blind test of it, and a playlist for both."""

from musicsim.hooks import MENU, Command, Extension, Section

EXTENSION = Extension(
    name="two_ears",
    commands={
        "two-ears": Command(
            "cli:compare_ears", "Compare your taste with a friend's, and make a playlist for both.", "Improve"
        )
    },
    sections=(Section("train", "page:draw", title="Two ears", tab="ears", group=MENU, place=40),),
)
