"""*Why?* over HTTP: the parts, passages and facts that the page shows."""

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import snapshot_under
from tests.waiting import PATIENCE_S


def dialog() -> None:
    """Draw the dialog of song 1 and song 2."""
    from musicsim.ui.base import openers
    from musicsim.ui.components import why_view

    why_view.ask_why(2)
    why_view.show_why(openers.snapshot(), 1, "")


@pytest.mark.parametrize("model", ["Sound", "Codewords"])
def test_explanation_is_that_of_the_explorer(client, tiny_library, model):
    answer = client.get("/api/songs/1/why", params={"other": 2, "model": model}).json()
    _, _, expected = explain_result(snapshot_under(tiny_library, model), 1, 2)
    parts = [(part["words"], part["share"]) for part in answer["parts"]]
    assert parts[: len(expected.parts)] == [
        (part.words, round(part.stages[-1].similarity, 4)) for part in expected.parts
    ]
    assert sum(part["share"] for part in answer["parts"]) == pytest.approx(answer["similarity"], abs=2e-3)
    listed = client.get("/api/songs/1/similar", params={"k": 11, "per_artist": 0, "model": model}).json()
    assert answer["similarity"] == next(song["similarity"] for song in listed if song["id"] == 2)
    assert answer["shared_sounds"] == list(expected.shared)
    assert [song["id"] for song in answer["songs"]] == [1, 2]
    for song, passages, heard_s in zip(answer["songs"], expected.passages, expected.heard_s, strict=True):
        assert [passage["sound"] for passage in song["passages"]] == list(range(len(expected.shared)))
        assert song["passages"] == [
            {"start_s": round(p.start_s, 2), "end_s": round(p.end_s, 2), "sound": p.slot} for p in passages
        ]
        assert song["heard_s"] == pytest.approx(heard_s, abs=0.01)
    assert answer["similarity_before"] is None
    assert answer["tags"] == list(expected.tags)


def test_page_shows_the_same_parts_and_notes(client, tiny_library):
    tiny_library.frame_files.path(tiny_library.song(2).content_hash).unlink()
    answer = client.get("/api/songs/1/why?other=2").json()
    app = AppTest.from_function(dialog, default_timeout=PATIENCE_S).run()
    assert not app.exception
    shown = " ".join(element.value for element in [*app.markdown, *app.caption])
    assert f"Similarity: **{answer['similarity']:.2f}** out of 1." in shown
    assert "were not stored" in answer["notes"][0]
    assert "were not stored" in shown
    for part in answer["differences"]:
        assert f"{part['words']} ({part['share']:.0%}" in shown


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("1/why?other=999", 404),
        ("999/why?other=1", 404),
        ("1/why?other=" + "9" * 30, 404),
        ("1/why?other=x", 422),
        ("1/why", 422),
        ("1/why?other=1", 200),
    ],
)
def test_unknown_song_is_named(client, path, status):
    answer = client.get(f"/api/songs/{path}")
    assert answer.status_code == status
    if status == 404:
        assert "does not exist" in answer.json()["error"]


def test_visitors_learn_no_paths(client, tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    answer = client.get("/api/songs/1/why?other=2")
    assert answer.status_code == 200
    assert str(tiny_library.folder.parent) not in answer.text
    assert tiny_library.song(1).folder not in answer.text
