"""The styles of the demo collection, neighbours in this list being far apart by ear."""

from musicsim.demo import styles_acoustic as acoustic
from musicsim.demo import styles_electronic as electronic
from musicsim.demo.style_types import Style

STYLES: tuple[Style, ...] = (
    electronic.AMBIENT,
    electronic.HOUSE,
    acoustic.FOLK,
    acoustic.ROCK,
    acoustic.JAZZ,
    electronic.TECHNO,
    acoustic.PIANO,
    acoustic.BAROQUE,
    electronic.DNB,
    electronic.LOFI,
    acoustic.CHORAL,
    acoustic.BOSSA,
)


def style_named(name: str) -> Style:
    """The style with this name; ``ValueError`` lists the names there are."""
    for style in STYLES:
        if style.name == name:
            return style
    raise ValueError(f"style {name!r} is unknown; there are {', '.join(s.name for s in STYLES)}")
