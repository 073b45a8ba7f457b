"""Changes of Sound on songs whose statistics can be worked out otherwise."""

import numpy as np

from experiments.sound_changes import CHANGES, choose, describe, fit_gated, normal_scores, of_sound, take_power
from experiments.support.music_sets import MusicSet
from experiments.support.pieces import Pieces, Scores
from experiments.support.timbre import scale_lengths
from musicsim.audio import SongFrames
from musicsim.explorer.models.representations import SHAPE_SHARE, TIMBRE_SHRINKAGE


def test_gate_leaves_out_quiet_frames_only(rng):
    mfcc = rng.normal(size=(6_000, 13))
    mfcc[2_000:3_500, 0] -= 45 * np.sqrt(40)  # 45 dB quieter in each of 40 bands
    frames = SongFrames(mfcc.astype(np.float16), None)
    rows = np.concatenate(list(frames.blocks()))
    is_loud = np.ones(6_000, dtype=bool)
    is_loud[2_000:3_500] = False
    for gate, kept in ((40, rows[is_loud]), (50, rows)):
        whole = fit_gated(frames, gate).merge()
        assert whole.n_frames.tolist() == [len(kept)]
        # float32 results of sums in another order
        np.testing.assert_allclose(whole.means[0], kept.mean(axis=0), atol=1e-3)
        np.testing.assert_allclose(whole.covariances[0], np.cov(kept.T), rtol=1e-3, atol=1e-2)


def test_transformed_vectors_keep_their_scale(rng):
    X = rng.normal(size=(50, 4)) * [1, 2, 3, 4] + 5
    unit = scale_lengths(X)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), np.sqrt(np.mean(np.sum(X**2, axis=1))))
    np.testing.assert_allclose(unit / X, np.broadcast_to((unit / X)[:, :1], X.shape))
    for Y in (take_power(X - X.mean(axis=0), 0.5), normal_scores(X)):
        assert (np.argsort(Y, axis=0) == np.argsort(X, axis=0)).all()
    np.testing.assert_allclose(take_power(X, 0.5).std(axis=0), X.std(axis=0))


def test_setting_is_chosen_by_its_scores(rng):
    def of(value):
        return Scores({measure: np.array([np.nan, value]) for measure in ("P@1", "P@5", "within")}, 0.0)

    assert choose([{"a": of(0.2), "b": of(0.5)}]) == "b"
    assert choose([{"a": of(0.2), "b": of(0.5)}, {"a": of(0.9), "b": of(0.5)}]) == "a"


def test_each_change_differs_from_sound(tiny_library):
    songs = tuple(sorted(tiny_library.songs(), key=lambda song: song.content_hash))
    pieces = Pieces(songs, np.array([song.artist for song in songs]), np.array([song.genre for song in songs]))
    of = describe(MusicSet("tiny", tiny_library, pieces), print)
    sound = of_sound(of, ())
    own = {f"shrinkage {TIMBRE_SHRINKAGE}", f"share {SHAPE_SHARE}", "0.95"}  # settings of Sound
    for change, ways in CHANGES.items():
        for name, setting in ways.items():
            D = setting(of, [of])
            assert np.isfinite(D).all()
            if change != "gate":  # these songs have no quiet passages
                assert np.allclose(D, sound) == (name in own), name
