"""The taste card as a picture. It contains no names of listeners or songs."""

from io import BytesIO
from textwrap import wrap
from typing import Any

from musicsim.extensions.taste_card.taste import PartOfTaste, Taste
from musicsim.wording import capitalize, count

_WIDTH, _ROW, _LINE, _MARGIN = 1200, 92, 34, 56
_LEFT, _RIGHT = 290, 660  # ends of the axis, from 0 to 100%
_LONGEST = 100  # characters per line
_MAX_NAME = 16
_PAPER, _INK, _GRAY, _AXIS, _BAND, _DOT = "#ffffff", "#1f2430", "#6b7280", "#e5e7eb", "#8fb3e8", "#1d4ed8"


def draw_picture(taste: Taste) -> bytes:
    """Return the card as a PNG, 1200 pixels wide. The taste must have enough answers."""
    from PIL import Image, ImageDraw, ImageFont

    large, medium, small = (ImageFont.load_default(size) for size in (44, 28, 22))
    notes = [line for note in taste.describe()[len(taste.parts) :] for line in wrap(note, _LONGEST)]
    notes.append("Vertical line: the share in the plain sound.")
    top = _MARGIN + 130
    image = Image.new("RGB", (_WIDTH, top + _ROW * len(taste.parts) + _LINE * len(notes) + _MARGIN + 20), _PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((_MARGIN, _MARGIN), "How I hear similarity", _INK, large)
    draw.text((_WIDTH - _MARGIN, _MARGIN + 12), "musicsim", _GRAY, medium, anchor="ra")
    told = f"Shares of the distance between songs in {count(taste.n_answers, 'answer')}, with 95% bands"
    draw.text((_MARGIN, _MARGIN + 66), told, _GRAY, small)
    for row, part in enumerate(taste.parts):
        _draw_part(draw, part, top + _ROW * row + _ROW // 2, medium, small)
    for row, note in enumerate(notes):
        draw.text((_MARGIN, top + _ROW * len(taste.parts) + 20 + _LINE * row), note, _INK, small)
    stream = BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _draw_part(draw: Any, part: PartOfTaste, y: int, medium: Any, small: Any) -> None:
    """Draw a part's name, band, share and verdict; y is the middle of its row."""
    x, low, high, plain = (place_on_axis(s) for s in (part.band.share, part.band.low, part.band.high, part.plain))
    draw.text((_MARGIN, y), capitalize(part.name)[:_MAX_NAME], _INK, medium, anchor="lm")
    draw.rounded_rectangle((_LEFT, y - 5, _RIGHT, y + 5), 5, _AXIS)
    draw.rounded_rectangle((low, y - 12, max(high, low + 4), y + 12), 6, _BAND)
    draw.line((plain, y - 26, plain, y + 26), _INK, 3)
    draw.ellipse((x - 9, y - 9, x + 9, y + 9), _DOT)
    draw.text((_RIGHT + 40, y - 18), part.amount, _INK, medium, anchor="lm")
    draw.text((_RIGHT + 40, y + 18), part.verdict, _GRAY, small, anchor="lm")


def place_on_axis(share: float) -> int:
    """Return the x coordinate of a share."""
    return round(_LEFT + share * (_RIGHT - _LEFT))
