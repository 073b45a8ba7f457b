"""Song by song similarity: kernels of timbre, harmony, rhythm, tags and plays."""

from musicsim.kernels.kernels import (
    KEYLESS_HARMONY_SIZE,
    chi2_rbf_kernel,
    gmm_kernel,
    harmony_kernel,
    harmony_map,
    human_tag_vectors,
    inverse_document_frequency,
    plays_cosine_kernel,
    ppk_kernel,
    ppk_map,
    ppk_similarity,
    rhythm_kernel,
    rhythm_map,
    tfidf_cosine_kernel,
    tfidf_map,
)

__all__ = [
    "KEYLESS_HARMONY_SIZE",
    "chi2_rbf_kernel",
    "gmm_kernel",
    "harmony_kernel",
    "harmony_map",
    "human_tag_vectors",
    "inverse_document_frequency",
    "plays_cosine_kernel",
    "ppk_kernel",
    "ppk_map",
    "ppk_similarity",
    "rhythm_kernel",
    "rhythm_map",
    "tfidf_cosine_kernel",
    "tfidf_map",
]
