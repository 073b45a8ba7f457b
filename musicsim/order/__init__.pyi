from .comparisons import CleaningReport as CleaningReport
from .comparisons import clean_comparisons as clean_comparisons
from .embedding import LinearPartialOrderEmbedding as LinearPartialOrderEmbedding
from .embedding import PartialOrderEmbedding as PartialOrderEmbedding
from .embedding import share_in_order as share_in_order
