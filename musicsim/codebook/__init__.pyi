from .codebook import Codebook as Codebook
from .codebook import suggest_n_codewords as suggest_n_codewords
