from .relevance import Relevance as Relevance
from .relevance import group_codes as group_codes
from .relevance import label_codes as label_codes
