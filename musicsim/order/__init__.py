"""Comparisons ("is this more like that, or like this?") and the spaces that are learned from them."""

from musicsim.order.comparisons import CleaningReport, clean_comparisons
from musicsim.order.embedding import LinearPartialOrderEmbedding, PartialOrderEmbedding, share_in_order

__all__ = [
    "CleaningReport",
    "LinearPartialOrderEmbedding",
    "PartialOrderEmbedding",
    "clean_comparisons",
    "share_in_order",
]
