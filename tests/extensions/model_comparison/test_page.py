"""Tests of the comparison of models on the Research page."""

import shutil

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from musicsim.library import Library
from tests.learning import hush
from tests.pages.actions import labels, open_page, run_until

adding = pytest.importorskip("musicsim.extensions.embeddings.adding", reason="another extension")


def against(library, monkeypatch) -> AppTest:
    """Draw the section for a library."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library))
    return open_page("research", "against")


@pytest.mark.long
def test_embedding_is_compared_with_sound(styles_library, tmp_path, monkeypatch):
    monkeypatch.setattr("musicsim.extensions.model_comparison.comparison.learn_ranking", lambda *_: None)  # faster
    shutil.copytree(styles_library, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        ids = [song.id for song in library.songs()]
        np.savez(tmp_path / "net.npz", ids=ids, vectors=np.random.default_rng(0).standard_normal((30, 6)))
        adding.add_own_vectors(library, tmp_path / "net.npz", "my_net", hush)
    app = against(tmp_path / "library", monkeypatch)
    assert app.selectbox(key="evaluate_against").options == ["my\\_net", "Codewords"]
    app.selectbox(key="evaluate_kind").select("genre").run()
    app.button(key="evaluate_compare").click().run()
    run_until(app, lambda: bool(app.table))
    assert app.table[0].value["Model"].tolist() == ["Sound", "Sound, learned", "my\\_net", "my\\_net, learned"]
    verdicts = next(m.value for m in app.markdown if m.value.startswith("- "))
    assert verdicts.startswith("- my\\_net is worse than Sound\\: ")
    assert len(verdicts.splitlines()) == 6
    app.session_state["evaluate_against_by"] = "auc"
    app.run()
    assert not app.exception
    assert any("Gain in AUC" in c.value for c in app.caption)


def test_too_few_artists_show_explanation(full, monkeypatch):
    app = against(full.folder, monkeypatch)
    app.button(key="evaluate_compare").click().run()
    run_until(app, lambda: any("at least 5 artists" in info.value for info in app.info))
    assert any("only 3 artists" in info.value for info in app.info)


def test_visitors_cannot_start_comparison(full, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    full.close()
    app = against(full.folder, monkeypatch)
    assert not app.exception
    assert not [button for button in app.button if button.key == "evaluate_compare"]
    assert "Ours vs. theirs" not in labels(app)
