"""A short film of a page, made of screenshots: an animated WebP that every browser shows."""

import io
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

_WIDTH = 960
_LONGEST_S = 1.5  # of one picture, in which nothing changes
_QUALITY = 45


class Film:
    """The pictures of a page, each with its time."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._pictures: list[tuple[float, bytes]] = []

    def watch(self, seconds: float) -> None:
        """Film the page for a while."""
        until = time.monotonic() + seconds
        while True:
            self._pictures.append((time.monotonic(), self._page.screenshot(type="jpeg", quality=90)))
            if time.monotonic() >= until:
                return
            self._page.wait_for_timeout(60)

    def press(self, text: str) -> None:
        """Type a text, letter by letter, into the box that has the focus."""
        for letter in text:
            self._page.keyboard.type(letter)
            self.watch(0.1)

    def save(self, target: Path) -> float:
        """Write the film; return its length in seconds."""
        frames: list[Image.Image] = []
        lengths: list[int] = []
        before = b""
        for (began, picture), (ended, _) in zip(self._pictures, self._pictures[1:], strict=False):
            length = round(1000 * min(_LONGEST_S, ended - began))
            if picture == before:
                lengths[-1] += length
                continue
            image = Image.open(io.BytesIO(picture)).convert("RGB")
            frames.append(image.resize((_WIDTH, round(_WIDTH * image.height / image.width)), Image.Resampling.LANCZOS))
            lengths.append(length)
            before = picture
        first, *others = frames
        part = target.with_suffix(".part")
        first.save(
            part, "WEBP", save_all=True, append_images=others, duration=lengths, loop=0, quality=_QUALITY, method=4,
            minimize_size=True,
        )  # fmt: skip
        part.replace(target)
        return sum(lengths) / 1000
