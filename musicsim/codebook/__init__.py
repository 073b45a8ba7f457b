"""Codewords: online Hartigan k-means over frames, and songs as histograms of their nearest codewords."""

from musicsim.codebook.codebook import Codebook, suggest_n_codewords

__all__ = ["Codebook", "suggest_n_codewords"]
