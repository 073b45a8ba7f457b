"""A click on a search result runs the results, not the whole page."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.support.streamlit_session import session
from tests.browser.serving import serve
from tests.sounds import write_song

APP = Path(__file__).parents[2] / "app.py"


@pytest.mark.long
def test_thumb_and_why_rerun_only_results(full, tmp_path):
    sound = write_song(tmp_path / "hummed.wav", "tones", seed=99).read_bytes()

    async def search(address):
        async with session(address) as visitor:
            await visitor.open()
            await visitor.switch("")
            await visitor.upload("hummed.wav", sound)
            for kind in ("like", "why"):
                title = heading(visitor, "Listen")
                answers = visitor.data("hits")["rows"]
                action = {"kind": kind, "index": 3, "song_id": answers[3]["song_id"], "to": -1}
                await visitor.tell("hits", "action", action)
                assert visitor.problems() == []
                assert heading(visitor, "Listen") is title, "it was not drawn again"
                if kind == "like":
                    judged = {row["song_id"]: row["judged"] for row in visitor.data("hits")["rows"]}
                    assert judged[action["song_id"]] == 1
            await visitor.upload("again.wav", sound)
            assert heading(visitor, "Listen") is not title, "another file runs the page"

    with serve(APP, environment={"MUSICSIM_LIBRARY": str(full.folder)}) as address:
        asyncio.run(search(address))


def heading(visitor, words):
    """Return the message that drew a heading."""
    return next(e for e in visitor.elements if e.WhichOneof("type") == "heading" and e.heading.body == words)
