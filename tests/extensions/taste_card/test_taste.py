"""Tests of the parts of a library's sound, a listener's taste, the choice of questions, and the card."""

import json
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from musicsim.errors import NotFoundError
from musicsim.explorer.refresh.joined_model import join_models
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.survey.questions import next_question
from musicsim.extensions.taste_card.parts import Parts
from musicsim.extensions.taste_card.picture import draw_picture, place_on_axis
from musicsim.extensions.taste_card.shares import Choices
from musicsim.extensions.taste_card.taste import (
    MIN_ANSWERS,
    estimate_taste,
    find_listener,
    predict_held_out,
    rate_questions,
    reduce_variance,
)
from musicsim.kernels import harmony_kernel
from musicsim.progress import no_progress
from tests.command import run
from tests.extensions.taste_card.listeners import answer_questions
from tests.pages.actions import open_page, said

BAND = (0x8F, 0xB3, 0xE8)


@pytest.fixture
def library(own_styles):
    return own_styles


def test_timbre_and_rhythm_add_up_to_sound(library):
    snapshot = take_snapshot(library)
    parts = Parts(snapshot)
    assert parts.names == ("timbre", "rhythm", "harmony")
    assert parts.plain[:2].sum() == pytest.approx(1)
    assert parts.plain[2] == 0
    ids = snapshot.row_ids[[[0, 1, 2], [3, 9, 20]]]
    found = parts.costs(ids, "like") @ (parts.plain * parts.widths[:2].sum())
    X = snapshot.X.astype(np.float64)
    truth = [[np.sum((X[a] - X[b]) ** 2) for b in others] for a, *others in ([0, 1, 2], [3, 9, 20])]
    np.testing.assert_allclose(found, truth, rtol=1e-5)  # vectors are float32


def test_harmony_is_that_of_the_kernel(library):
    songs = library.songs()[:3]
    harmony = library.frame_files.aspects([song.content_hash for song in songs]).harmony
    K = harmony_kernel(harmony, key_invariant=True)
    parts = Parts(take_snapshot(library))
    (found,) = parts.costs(np.array([[song.id for song in songs]]), "like")
    np.testing.assert_allclose(found[:, 2] * parts.widths[2], 2 - 2 * K[0, 1:], rtol=1e-3)


def test_joined_model_is_a_further_part(library):
    model_id = join_models(library, ["Sound", "Codewords"], "Both", no_progress)
    parts = Parts(take_snapshot(library, model_id))
    assert parts.names == ("timbre", "rhythm", "harmony", "Codewords")
    assert parts.plain[3] == 0
    codewords = take_snapshot(library, library.models.find("Codewords").id)
    a, b, c = codewords.vectors_at(np.arange(3)).astype(np.float64)
    (found,) = parts.costs(codewords.row_ids[None, :3], "like")
    np.testing.assert_allclose(found[:, 3] * parts.widths[3], [np.sum((a - b) ** 2), np.sum((a - c) ** 2)], rtol=1e-5)


def test_mean_distance_of_each_part_is_one(library):
    parts = Parts(take_snapshot(library))
    ids = np.array([song.id for song in library.songs()])
    pairs = np.array([(a, b, b) for a in ids for b in ids if a != b])
    np.testing.assert_allclose(parts.costs(pairs, "like")[:, 0].mean(axis=0), 1, rtol=1e-5)


def test_songs_without_a_part_are_unknown(library):
    snapshot = take_snapshot(library)
    first, second, third, fourth = (song.id for song in library.songs()[:4])
    library.frame_files.aspects_path(library.song(fourth).content_hash).unlink()
    parts = Parts(snapshot)
    known, partly, unknown = parts.costs(
        np.array([[first, second, third], [first, second, fourth], [1, 2, 999]]), "odd"
    )
    assert np.isfinite(known).all()
    assert np.isfinite(partly[:, :2]).all()
    assert np.isnan(partly[:, 2]).any()
    assert np.isnan(unknown).any(axis=0).all()
    for song in library.songs()[:12]:
        library.frame_files.aspects_path(song.content_hash).unlink(missing_ok=True)
    assert Parts(snapshot).names == ("timbre", "rhythm"), "most songs must have a part"


@pytest.mark.parametrize(("form", "shown"), [("odd", [1, 2, 0]), ("like", [2, 0, 1])])
def test_answers_become_differences_of_costs(library, form, shown):
    parts, ids = Parts(take_snapshot(library)), [song.id for song in library.songs()[:3]]
    songs = [ids[at] for at in shown]
    library.judgments.add("A", form, songs, 1)
    library.judgments.add("A", form, songs, None)
    answered, unsure = parts.differences(library.judgments.answers())
    (options,) = parts.costs(np.array([songs]), form)
    expected = options[[0, 2]] - options[1] if form == "odd" else options[[1]] - options[0]
    np.testing.assert_allclose(answered, expected)
    assert unsure is None


def test_taste_recovers_the_listener(library):
    """Rhythm is everything for Ann, and harmony for Ben; Sound's share of rhythm is near a quarter."""
    answer_questions(library, "Ann", {"rhythm": 1.0}, 120, total=30)
    answer_questions(library, "Ben", {"harmony": 1.0}, 60, total=30)
    answers, snapshot = library.judgments.answers(), take_snapshot(library)
    ann = estimate_taste(snapshot, answers, "Ann")
    timbre, rhythm, harmony = ann.parts
    assert (ann.n_answers, ann.n_needed) == (120, 0)
    assert rhythm.is_shown
    assert rhythm.band.low > 0.5
    assert timbre.is_shown
    assert timbre.band.high < 0.5
    assert not harmony.is_shown
    assert ann.predicted.n == 120
    assert ann.predicted.low > ann.predicted.chance
    assert rhythm.verdict.startswith(f"{rhythm.band.share / rhythm.plain:.1f} times as much as in Sound (")
    assert harmony.verdict == "no difference from Sound shown"
    ben = estimate_taste(snapshot, answers, "Ben")
    assert ben.parts[2].band.low > 0.5
    assert ben.parts[2].verdict == "Sound does not use it"


def test_too_few_answers_say_how_many_are_missing(library):
    answer_questions(library, "Ann", {"rhythm": 1.0}, MIN_ANSWERS - 1)
    library.judgments.add("Ann", "odd", [song.id for song in library.songs()[:3]], None)
    answer_questions(library, "Ben", {"rhythm": 1.0}, 3)
    taste = estimate_taste(take_snapshot(library), library.judgments.answers(), "Ann")
    assert (taste.n_answers, taste.n_needed, taste.parts) == (MIN_ANSWERS - 1, 1, ())
    assert taste.describe() == ["1 more answer needed: 29 of 30."]


def test_held_out_answers_do_not_predict_themselves():
    """Each part decides one answer, so nothing is learned about it from the others."""
    own = [np.eye(20)[[part]] for part in range(20)]
    assert not predict_held_out(own, np.arange(20)).any()
    same = [np.eye(20)[[part // 2]] for part in range(20)]
    assert predict_held_out(same, np.arange(20)).any()
    assert not predict_held_out(same, np.arange(20) // 2).any(), "repeated questions are held out together"
    assert predict_held_out([np.ones((1, 2))] * 20, np.arange(20)).all()


def test_reduction_of_variance_matches_definition(rng):
    """The information of a question is the Hessian of an answer's loss, which does not depend on the choice."""
    psi = np.array([2.0, 1.0, 0.5])
    options = rng.gamma(2.0, 0.5, size=(6, 3, 3))
    hessian = np.diag([5.0, 3.0, 9.0])
    found = reduce_variance(np.concatenate([options, np.full((1, 3, 3), np.nan)]), psi, hessian, 1)
    nothing = Choices([np.zeros((1, 3))]).loss(psi)[2]

    def share(at):
        return at[1] / at.sum()

    slope = np.array([(share(psi + step) - share(psi - step)) / 2e-6 for step in np.eye(3) * 1e-6])
    for question in range(6):
        for chosen in range(3):
            given = np.delete(options[question], chosen, axis=0) - options[question, chosen]
            added = Choices([given]).loss(psi)[2] - nothing
            before, after = (slope @ np.linalg.inv(H) @ slope for H in (hessian, hessian + added))
            assert found[question] == pytest.approx(before - after, rel=1e-4)
    assert found[6] == 0


def test_chosen_questions_are_about_the_widest_band(library):
    """A question whose options differ in no part is worth nothing; the chosen one is worth the most."""
    answer_questions(library, "Ann", {"timbre": 0.5, "rhythm": 0.5}, 40, total=4)
    snapshot, mine = take_snapshot(library), library.judgments.answers()
    rated = []

    def record(*arguments):
        values = rate_questions(*arguments)
        rated.append((arguments[-1], values))
        return values

    for seed in range(12):
        question = next_question(snapshot, mine, listener="Bea", criterion=record, rng=np.random.default_rng(seed))
        if rated:
            break
    ids, values = rated[0]
    assert (values > 0).all()
    assert question.song_ids == tuple(ids[np.argmax(values)])
    assert not question.is_random
    first, second = library.songs()[:2]
    same = np.array([[first.id, second.id, second.id]])
    assert rate_questions(snapshot, mine, "like", same) == pytest.approx([0], abs=1e-12)


def test_listener_must_be_named_if_there_are_several():
    assert find_listener(["Ann"], None) == find_listener(["Ann", "Ben"], "Ann") == "Ann"
    for listeners, chosen, problem in (
        ([], None, "none so far"),
        (["Ann", "Ben"], None, r"one of those who have answered \(Ann, Ben\)"),
        (["Ann"], "Zoë", r"one of those who have answered \(Ann\)"),
    ):
        with pytest.raises(NotFoundError, match=problem):
            find_listener(listeners, chosen)


def test_picture_shows_bands_to_scale(library):
    answer_questions(library, "Ann", {"timbre": 0.6, "rhythm": 0.4}, 60)
    taste = estimate_taste(take_snapshot(library), library.judgments.answers(), "Ann")
    with Image.open(BytesIO(draw_picture(taste))) as image:
        assert image.format == "PNG"
        pixels = np.asarray(image.convert("RGB"))
    is_band = (pixels == BAND).all(axis=2)
    rows = np.flatnonzero(is_band.any(axis=1))
    found = [
        np.flatnonzero(is_band[part].any(axis=0)) for part in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    ]
    assert len(found) == len(taste.parts)
    for columns, part in zip(found, taste.parts, strict=True):
        ends = place_on_axis(part.band.low), max(place_on_axis(part.band.high), place_on_axis(part.band.low) + 4)
        assert (columns.min(), columns.max()) == pytest.approx(ends, abs=3)  # the line of Sound may cover an end
    assert place_on_axis(1) - place_on_axis(0) == 2 * (place_on_axis(0.5) - place_on_axis(0))


def test_taste_on_the_command_line(library, tmp_path):
    file = tmp_path / "taste.png"
    _, problem = run("answers", "taste", library=library.folder, expect=1)
    assert "none so far; answer questions in Compare first" in problem
    answer_questions(library, "Ann", {"rhythm": 1.0}, 10)
    out, _ = run("answers", "taste", "--picture", file, library=library.folder)
    assert "20 more answers needed: 10 of 30." in out
    assert not file.exists()
    answer_questions(library, "Ann", {"rhythm": 1.0}, 50, seed=1)
    told = json.loads(run("answers", "taste", "--json", "--picture", file, library=library.folder)[0])
    taste = estimate_taste(take_snapshot(library), library.judgments.answers(), "Ann")
    assert [(part["name"], part["band"]["low"]) for part in told["parts"]] == [
        (part.name, part.band.low) for part in taste.parts
    ]
    assert [part["is_shown"] for part in told["parts"]] == [part.is_shown for part in taste.parts]
    assert told["predicted"]["n"] == 60
    assert file.read_bytes() == draw_picture(taste)
    out, _ = run("answers", "taste", "--listener", "Ann", library=library.folder)
    assert f"Rhythm: {taste.parts[1].amount} of the distance; {taste.parts[1].verdict}." in out.replace("\n", " ")
    _, problem = run("answers", "taste", "--picture", tmp_path, library=library.folder, expect=1)
    assert "cannot be written" in problem


def test_card_in_compare(library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(library.folder))
    answer_questions(library, "me", {"rhythm": 1.0}, 12)
    app = open_page("train", "compare", "taste_card")
    assert "18 more answers needed: 12 of 30." in said(app)
    answer_questions(library, "me", {"rhythm": 1.0}, 60, seed=1)
    app.run()
    assert not app.exception
    taste = estimate_taste(take_snapshot(library), library.judgments.answers(), "me")
    for line in taste.describe():
        assert line in said(app)
    assert app.session_state["compare_criterion"] is None
    app.toggle(key="taste_card_narrow").set_value(True).run()
    assert not app.exception
    assert app.session_state["compare_criterion"] is rate_questions
    app.toggle(key="taste_card_narrow").set_value(False).run()
    assert app.session_state["compare_criterion"] is None
