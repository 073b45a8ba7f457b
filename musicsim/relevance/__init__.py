"""Who is similar to whom: from labels, lists and plays."""

from musicsim.relevance.relevance import Relevance, group_codes, label_codes

__all__ = ["Relevance", "group_codes", "label_codes"]
