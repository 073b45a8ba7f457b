"""Gaussian mixtures of frames: of songs, with their divergence, and of tags (thesis 5.4.3)."""

from musicsim.mixtures.divergence import cross_entropy, draw_samples, kl_divergences
from musicsim.mixtures.songs import SongMixtures, fit_mixtures
from musicsim.mixtures.space import MixtureSpace
from musicsim.mixtures.tags import SemanticMultinomials

__all__ = [
    "MixtureSpace",
    "SemanticMultinomials",
    "SongMixtures",
    "cross_entropy",
    "draw_samples",
    "fit_mixtures",
    "kl_divergences",
]
