"""Topics of lyrics by latent Dirichlet allocation: the edges "about ..." (thesis, section 7.6.2).

Lyrics are counts of words, as in the musiXmatch data. Frequent words ("you", "and") would be at the top of most topics
without characterizing any. They are dropped by document frequency, which works for stemmed words and for every
language, unlike a list of stop words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array
from musicsim._checks import check_whole
from musicsim.playlist.counts import check_counts

_N_TOP = 5  # topics per song
_PASSES = 5


@dataclass(frozen=True, slots=True)
class LyricsTopics:
    """Topics of songs' lyrics, from :func:`lyrics_topics`.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import lyrics_topics
    >>> found = lyrics_topics(np.array([[9, 5, 0, 0], [0, 0, 7, 5]]), 2, max_share=1, random_state=0)
    >>> found.word_probability.shape
    (2, 4)
    >>> sorted(found.words(found.topics[0][0], ["love", "heart", "road", "truck"], n=2))
    ['heart', 'love']
    """

    # the five topics of each song with the largest weights, in descending order; empty for a song without words
    topics: list[list[int]]
    # P[word | topic], float64 (n_topics, n_words); rows sum to 1; dropped and absent words have probability 0
    word_probability: Float64Array
    # share of each word among the used words, float64 (n_words,); sums to 1
    word_share: Float64Array

    def words(self, topic: int, vocabulary: Sequence[str], n: int = 3) -> list[str]:
        """Return the `n` most characteristic words of a topic, best first.

        Words are sorted by p log(p / q), where p is the word's share in the topic, and q its share in all lyrics. There
        may be fewer than `n`, because words with p <= q are excluded.
        """
        n_topics, n_words = self.word_probability.shape
        if len(vocabulary) != n_words:
            raise ValueError(f"vocabulary has {len(vocabulary)} entries for {n_words} words: pass one per word")
        if not 0 <= topic < n_topics:
            raise ValueError(f"topic={topic} must be from 0 to {n_topics - 1}")
        p, q = self.word_probability[topic], self.word_share
        used = np.flatnonzero(p > 0)
        relevance = p[used] * np.log(p[used] / q[used])
        best = np.argsort(-relevance, kind="stable")[:n]
        return [vocabulary[used[k]] for k in best if relevance[k] > 0]


def lyrics_topics(
    counts: Any, n_topics: int = 32, *, max_share: float = 0.3, random_state: int | np.random.Generator | None = None
) -> LyricsTopics:
    """Find the topics of songs from the words of their lyrics.

    Parameters
    ----------
    counts : sparse or dense matrix of shape (n_songs, n_words), not negative
        Number of times that each word occurs in each song; a song without lyrics is a row of zeros.
    n_topics : int >= 1; the thesis uses 32
    max_share : float, 0 < max_share <= 1
        Words in more than this share of the songs with lyrics are dropped; with 1, none are, as in the thesis.
    random_state : int, numpy Generator or None

    Notes
    -----
    scikit-learn's online variational Bayes (Hoffman, Blei and Bach, NIPS 2010) is used, with its priors of 1 /
    n_topics. Five passes over 8,259 songs and 5,000 words from musiXmatch take 30 s on one core; the time is linear in
    the number of songs. This needs 12 bytes per count, and 8 n_topics bytes per song.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import lyrics_topics
    >>> vocabulary = ["love", "heart", "road", "truck"]
    >>> counts = np.array([[9, 5, 0, 0], [4, 6, 0, 0], [0, 0, 7, 5], [0, 0, 5, 8], [0, 0, 0, 0]])
    >>> found = lyrics_topics(counts, 2, max_share=1, random_state=0)
    >>> found.topics[0][:1] == found.topics[1][:1] != found.topics[2][:1]
    True
    >>> sorted(found.words(found.topics[2][0], vocabulary, n=2)), found.topics[4]
    (['road', 'truck'], [])
    """
    check_whole("n_topics", n_topics, 1)
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share={max_share} must be in (0, 1]")
    matrix = check_counts(counts, np.float64, "counts", "how often each word occurs in each song")
    n_songs, n_words = matrix.shape
    n_with_words = np.count_nonzero(np.diff(matrix.indptr))
    frequency = np.bincount(matrix.indices, minlength=n_words)
    kept = np.flatnonzero((frequency > 0) & (frequency <= max_share * n_with_words))
    used = matrix[:, kept]
    rows = np.flatnonzero(np.diff(used.indptr))
    topics: list[list[int]] = [[] for _ in range(n_songs)]
    probability, share = np.zeros((n_topics, n_words)), np.zeros(n_words)
    if rows.size == 0:
        return LyricsTopics(topics, probability, share)

    from sklearn.decomposition import LatentDirichletAllocation

    # scikit-learn does not accept a NumPy Generator
    seed = int(np.random.default_rng(random_state).integers(2**31))
    model = LatentDirichletAllocation(n_topics, learning_method="online", max_iter=_PASSES, random_state=seed, n_jobs=1)
    weight = model.fit_transform(used[rows])
    order = np.argsort(-weight, axis=1, kind="stable")[:, :_N_TOP]
    for song, ranked in zip(rows.tolist(), order.tolist(), strict=True):
        topics[song] = ranked
    probability[:, kept] = model.components_ / model.components_.sum(axis=1, keepdims=True)
    totals = np.asarray(used.sum(axis=0), dtype=np.float64).ravel()
    share[kept] = totals / totals.sum()
    return LyricsTopics(topics, probability, share)
