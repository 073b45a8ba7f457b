"""Public similarity judgments: their formats, votes as triplets, and their import as answers."""

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from musicsim.errors import LibraryError
from musicsim.library.db import schema
from musicsim.library.importing import load_judgments
from musicsim.library.importing.answers import VotedComparisons, import_answers
from musicsim.library.stores.judgments import Judgment, comparisons
from musicsim.order import LinearPartialOrderEmbedding, clean_comparisons, share_in_order
from tests.experiments.votes import DIM_SIM_HEADER, dim_sim_file, magnatagatune_file


@pytest.fixture
def magnatagatune(tmp_path):
    """Three questions: decided by 4 of 6 votes, tied, and with one vote."""
    path = tmp_path / "comparisons_final.csv"
    questions = [(("2", "6", "10"), (1, 1, 4)), (("6", "2", "31"), (3, 3, 0)), (("40", "41", "42"), (0, 1, 0))]
    path.write_text(magnatagatune_file(questions), encoding="utf-8")
    return path


def rows_of(voted):
    return {
        (*triplet, votes, against, question)
        for triplet, votes, against, question in zip(
            map(tuple, voted.triplets.tolist()), voted.votes.tolist(), voted.against.tolist(),
            voted.questions.tolist(), strict=True,
        )
    }  # fmt: skip


def test_reads_magnatagatune(magnatagatune):
    judged = load_judgments(magnatagatune)
    assert (judged.data_set, judged.form) == ("MagnaTagATune", "odd")
    assert judged.clips == ("2", "6", "10", "31", "40", "41", "42")
    assert judged.paths[:2] == ("2/clip-2.mp3", "6/clip-6.mp3")
    assert judged.questions.tolist() == [[0, 1, 2], [1, 0, 3], [4, 5, 6]]
    assert judged.votes.tolist() == [[1, 1, 4], [3, 3, 0], [0, 1, 0]]


def test_quoted_cells_and_windows_line_ends_are_the_same_file(magnatagatune, tmp_path):
    text = magnatagatune.read_text("utf-8")
    quoted = "\r\n".join('"' + line.replace("\t", '"\t"') + '"' for line in text.splitlines())
    (tmp_path / "quoted.csv").write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    assert load_judgments(tmp_path / "quoted.csv").clips == load_judgments(magnatagatune).clips


def test_each_vote_for_odd_one_counts_for_two_triplets(magnatagatune):
    voted = load_judgments(magnatagatune).triplets()
    assert rows_of(voted) == {
        (0, 1, 2, 4, 1, 0), (1, 0, 2, 4, 1, 0), (2, 0, 1, 1, 1, 0),  # clip 2 is the odd one
        (1, 3, 0, 3, 0, 1), (0, 3, 1, 3, 0, 1), (3, 1, 0, 3, 3, 1),  # clip 3 is in the middle
        (4, 6, 5, 1, 0, 2), (6, 4, 5, 1, 0, 2),
    }  # fmt: skip
    assert voted.has_majority.sum() == 6


def test_comparisons_are_those_of_the_same_answers_in_a_library(magnatagatune):
    judged = load_judgments(magnatagatune)
    expected = Counter(
        comparison
        for clips, votes in zip(judged.questions.tolist(), judged.votes.tolist(), strict=True)
        for chosen, n in enumerate(votes)
        for comparison in comparisons(Judgment(0, 0.0, "", "odd", tuple(clips), chosen)) * n
    )

    def plain(row):
        return tuple(sorted(row[:2])), tuple(sorted(row[2:]))

    found = Counter(plain(row) for row in judged.triplets().comparisons.tolist())
    assert found == Counter(plain(row) for row in expected.elements())


def test_majority_of_comparisons_is_that_of_triplets(magnatagatune):
    voted = load_judgments(magnatagatune).triplets()
    kept, report = clean_comparisons(voted.comparisons, contradictions="majority", reduce=False, random_state=0)
    assert {tuple(row) for row in kept[:, [0, 1, 3]].tolist()} == set(
        map(tuple, voted.triplets[voted.has_majority].tolist())
    )
    assert report.n_cyclic == 0


def test_reads_dim_sim(tmp_path):
    path = tmp_path / "clean-dim-sim.csv"
    path.write_text(dim_sim_file([(("TRA@1.5", "TRB@2", "TRC@30"), (0, 1)), (("TRA@1.5", "TRA@9", "TRC@30"), (7, 2))]))
    judged = load_judgments(path)
    assert (judged.data_set, judged.form) == ("dim-sim", "like")
    assert judged.clips == ("TRA@1.5", "TRB@2", "TRC@30", "TRA@9")
    assert judged.paths == ("TRA.mp3", "TRB.mp3", "TRC.mp3", "TRA.mp3")
    assert rows_of(judged.triplets()) == {(0, 2, 1, 1, 0, 0), (0, 3, 2, 7, 2, 1)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\t2\t3\t1\tfew\t0\ta.mp3\tb.mp3\tc.mp3", "line 3: the number of votes is 'few'"),
        ("1\t2\t3\t1\t-1\t0\ta.mp3\tb.mp3\tc.mp3", "line 3: the number of votes is '-1'"),
        ("1\t2\t3\t1\t9999999\t0\ta.mp3\tb.mp3\tc.mp3", "whole number from 0 to 10,000"),
        ("1\t2\t3\t1\t1", "line 3: has 5 values, but the header has 9"),
        ("1\t2\t1\t1\t1\t0\ta.mp3\tb.mp3\ta.mp3", "line 3: the clips are '1', '2', '1'; give three different"),
        ("1\t2\t3\t1\t1\t0\ta.mp3\t\tc.mp3", "line 3: the clips are"),
    ],
)
def test_broken_line_is_named(tmp_path, line, message):
    path = tmp_path / "broken.csv"
    path.write_text(magnatagatune_file([(("2", "6", "10"), (1, 1, 4))]) + line + "\n")
    with pytest.raises(LibraryError, match=message) as error:
        load_judgments(path)
    assert str(error.value).startswith(f"{path}: line 3: ")


def test_broken_start_of_a_clip_is_named(tmp_path):
    path = tmp_path / "dim.csv"
    path.write_text(dim_sim_file([(("TRA@1.5", "TRB@2", "TRC@30"), (0, 1))]).replace("1.5", "soon"))
    with pytest.raises(LibraryError, match="line 2: the start of a clip is 'soon'"):
        load_judgments(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("song1,song2,song3,picked_song\na,b,c,a\n", "does not contain votes"),
        (DIM_SIM_HEADER + "\n", "does not contain a comparison"),
        ("artist,title\n", "does not contain answers"),
    ],
)
def test_other_files_are_rejected(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(LibraryError, match=message):
        load_judgments(tmp_path / "x.csv")
    with pytest.raises(LibraryError, match="cannot be read"):
        load_judgments(tmp_path / "no.csv")


def test_votes_become_answers(tiny_library):
    a, b, c, d = tiny_library.songs()[:4]
    paths = {n: f"{song.path.parent.name}/{song.path.name}" for n, song in enumerate((a, b, c, d))}
    questions = [((0, 1, 2), (1, 0, 3)), ((1, 2, 3), (2, 2, 0)), ((0, 1, 9), (5, 0, 0)), ((0, 2, 3), (0, 0, 0))]
    text = magnatagatune_file(questions, paths | {9: "z/elsewhere.mp3"}) + "1\t2\n"
    result = import_answers(tiny_library, io.BytesIO(text.encode()))
    assert (result.n_read, result.n_added, result.n_known, result.n_unmatched) == (14, 8, 0, 5)
    assert result.comparisons == VotedComparisons(n_used=3, n_unmatched=1, n_undecided=2)
    assert str(result.comparisons) == "3 comparisons used (2 without a majority), 1 unmatched"
    assert result.problems == (
        "Line 4: “z/elsewhere.mp3” is not in this library.",
        "Line 6: has 2 values, but the header has 9.",
    )
    stored = Counter((x.listener, x.kind, x.song_ids, x.chosen) for x in tiny_library.judgments.answers())
    first, second = (a.id, b.id, c.id), (b.id, c.id, d.id)
    assert stored == {
        ("MagnaTagATune", "odd", first, 0): 1, ("MagnaTagATune", "odd", first, 2): 3,
        ("MagnaTagATune", "odd", second, 0): 2, ("MagnaTagATune", "odd", second, 1): 2,
    }  # fmt: skip
    again = import_answers(tiny_library, io.BytesIO(text.encode()))
    assert (again.n_added, again.n_known) == (0, 8)


def test_dim_sim_votes_become_answers(tiny_library):
    f, songs = schema.files, tiny_library.songs()[:3]
    with tiny_library.write() as connection:
        for song, track in zip(songs, ("TRA", "TRB", "TRC"), strict=True):
            connection.execute(f.update().where(f.c.song_id == song.id).values(path=Path(f"/dim-sim/{track}.mp3")))
    text = dim_sim_file([(("TRA@1", "TRB@2.5", "TRC@3"), (2, 1))]).encode()
    assert import_answers(tiny_library, io.BytesIO(text)).comparisons == VotedComparisons(1, 0, 0)
    ids = tuple(song.id for song in songs)
    stored = [(x.listener, x.kind, x.song_ids, x.chosen) for x in tiny_library.judgments.answers()]
    assert stored == [("dim-sim", "like", ids, chosen) for chosen in (1, 1, 2)]


def test_triplets_fit_order_learners(magnatagatune):
    judged = load_judgments(magnatagatune)
    kept, _ = clean_comparisons(judged.triplets().comparisons, contradictions="majority", random_state=0)
    X = np.random.default_rng(0).normal(size=(len(judged.clips), 10))
    model = LinearPartialOrderEmbedding(C=100.0, tol=0.1).fit(X, kept)
    assert share_in_order(model.transform(X), kept) == 1.0
