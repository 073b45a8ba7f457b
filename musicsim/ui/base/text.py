"""Text of files and people inside of Streamlit's Markdown and plotly's charts."""

import re
from html import escape

from musicsim.public import safe_message

_SPECIAL = re.compile(r"([\\`*_\[\]<>$:~#|{}!&^=])")
_LIST_MARK = re.compile(r"^([-+]|\d+(?=[.)]))")


def plain(text: object) -> str:
    """The text so that Markdown shows it as it stands: ``A$AP *live* [2]`` is no formula, emphasis or link.

    Lone surrogates of file names that are not UTF-8, which no browser takes, become question marks. Of an error it is
    what who uses the app is safe_message.
    """
    text = safe_message(text) if isinstance(text, BaseException) else text
    escaped = _SPECIAL.sub(r"\\\1", " ".join(shown(text).split()))
    # "1. Intro" and "- 2 -" at the start of a line would be lists
    return _LIST_MARK.sub(lambda mark: mark[0] + "\u200b" if mark[0].isdigit() else "\\" + mark[0], escaped)


def shown(text: object) -> str:
    """Text as a browser takes it, whatever bytes a file name is made of."""
    return str(text).encode("utf-8", "replace").decode()


def in_chart(text: object, longest: int) -> str:
    """The text, cut to so many letters, so that plotly shows it as it stands, in legends, axes and beside the pointer.

    Plotly reads a little HTML everywhere, and takes back &lt; &gt; and &amp;, but no &quot;.
    """
    whole = shown(text)
    return escape(whole if len(whole) <= longest else whole[: longest - 1] + "…", quote=False)


def interval(mean: float, low: float, high: float, places: int = 3) -> str:
    """A mean in Markdown, with the ends of its interval in grey."""
    return f"**{mean:.{places}f}** :small[:gray[{low:.{places}f}–{high:.{places}f}]]"
