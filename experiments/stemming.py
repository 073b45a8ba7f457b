"""Words in tags: finding artists with shared listeners by whole tags, words and stems (thesis, section 2.5.2).

The thesis stems social tags and biographies and drops stop words before TF-IDF and cosine. Here the data are the
artists of Last.fm 2k (HetRec 2011). Each artist's tags are weighted by number of listeners and used whole, as words,
and as stems (Porter's second stemmer, snowballstemmer). Relevant are the ten artists that share most listeners. All
artists query all others. Differences have 95 % intervals by resampling artists.

musiXmatch's bags of words are stemmed by the same algorithm. The last row is the number of its 5,000 words that the
stemmer leaves unchanged. The public data lack the text of lyrics, so the effect of stemming on lyrics is not measured.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.support.report import Claim, Progress, Row, Settings, Skipped, at_least, main
from experiments.support.descriptors import LASTFM
from musicsim._arrays import Float64Array
from musicsim.datasets import find, open_text
from musicsim.evaluation import bootstrap_pairs
from musicsim.evaluation.ranking import distance_scores
from musicsim.kernels import tfidf_cosine_kernel
from musicsim.relevance import Relevance

WHOLE, WORDS, STEMS, STOPPED = "whole tags", "words", "stems", "stems, no stop words"
MIN_LISTENERS, MIN_TAGS = 5, 5
MEASURES = ("auc", "map", "mrr")
_WORD = re.compile(r"[^\W\d_]+")

Counts = list[Counter[str]]


def stemmer() -> Callable[[str], str]:
    """Return the English stemmer that musiXmatch used."""
    try:
        import snowballstemmer
    except ImportError as absent:
        raise Skipped("snowballstemmer is absent: pip install snowballstemmer") from absent

    stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return stem


def as_words(tags: Counter[str]) -> Counter[str]:
    """Return the words of tags, counted as often as their tags."""
    words: Counter[str] = Counter()
    for tag, count in tags.items():
        for word in _WORD.findall(tag.casefold()):
            words[word] += count
    return words


def as_stems(words: Counter[str], stem: Callable[[str], str], stopped: frozenset[str] = frozenset()) -> Counter[str]:
    """Merge words with equal stems, without stop words."""
    stems: Counter[str] = Counter()
    for word, count in words.items():
        if word not in stopped:
            stems[stem(word)] += count
    return stems


def load_artists() -> tuple[Counts, Relevance]:
    """Load tags of the artists with enough listeners and tags, and artist similarity by listeners."""
    tables = {
        name: pd.read_csv(find(LASTFM, f"{name}.dat"), sep="\t", encoding_errors="replace", quoting=3)
        for name in ("tags", "user_artists", "user_taggedartists")
    }
    plays, given = (
        tables["user_artists"],
        tables["user_taggedartists"].drop_duplicates(["userID", "artistID", "tagID"]),
    )
    heard = plays[plays["weight"] >= 10]["artistID"].value_counts()
    tagged = given["artistID"].value_counts()
    artists = np.intersect1d(heard.index[heard >= MIN_LISTENERS], tagged.index[tagged >= MIN_TAGS])
    place = {artist: i for i, artist in enumerate(artists.tolist())}
    kept = plays[plays["artistID"].isin(artists)]
    triples = pd.DataFrame(
        {"user": kept["userID"], "item": kept["artistID"].map(place).astype(np.int64), "count": kept["weight"]}
    )
    names = tables["tags"].set_index("tagID")["tagValue"].astype(str)
    tags: Counts = [Counter() for _ in artists]
    for artist, tag in given[given["artistID"].isin(artists)][["artistID", "tagID"]].itertuples(index=False):
        if tag in names.index:
            tags[place[artist]][names.at[tag]] += 1
    return tags, Relevance.from_plays(triples, n=len(artists))


def ranked(texts: Counts, relevance: Relevance) -> tuple[dict[str, Float64Array], int]:
    """Return scores of each artist by the cosine of TF-IDF, and the size of the vocabulary."""
    from sklearn.feature_extraction import DictVectorizer

    vectors = DictVectorizer()
    X = vectors.fit_transform(texts)
    return distance_scores(1.0 - tfidf_cosine_kernel(X), relevance), len(vectors.vocabulary_)


def _rows(scores: dict[str, tuple[dict[str, Float64Array], int]], seed: int) -> Iterator[Row]:
    for name, (found, n_words) in scores.items():
        row: dict[str, Any] = {"tags as": name, "vocabulary": n_words}
        row |= {measure.upper(): float(np.nanmean(found[measure])) for measure in MEASURES}
        if name != WORDS:
            mean, low, high = bootstrap_pairs(found["auc"], scores[WORDS][0]["auc"], random_state=seed)
            row["lead on words, AUC"] = f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
        yield row | {"thesis vocabulary": 7737 if name == STOPPED else None}


def stemmed_share(stem: Callable[[str], str]) -> tuple[int, float]:
    """Return the size of musiXmatch's vocabulary, and the share of its words that are already stems."""
    with open_text("mxm", "mxm_dataset_test_part.txt") as file:
        words = next(line[1:].strip().split(",") for line in file if line.startswith("%"))
    return len(words), float(np.mean([stem(word) == word for word in words]))


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure all artists; there is no longer form."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    stem = stemmer()
    tags, relevance = load_artists()
    settings.facts.update(artists=len(tags), min_listeners=MIN_LISTENERS, min_tags=MIN_TAGS)
    words = [as_words(one) for one in tags]
    texts = {
        WHOLE: tags,
        WORDS: words,
        STEMS: [as_stems(one, stem) for one in words],
        STOPPED: [as_stems(one, stem, ENGLISH_STOP_WORDS) for one in words],
    }
    scores = {}
    for name, counts in texts.items():
        scores[name] = ranked(counts, relevance)
        progress(f"{name}: AUC {np.nanmean(scores[name][0]['auc']):.4f}")
    rows = list(_rows(scores, settings.seed))
    n_words, share = stemmed_share(stem)
    rows.append({"musiXmatch's words": n_words, "share that are stems": share})
    means = {name: float(np.nanmean(found["auc"])) for name, (found, _) in scores.items()}
    return rows, [at_least("AUC of stems without stop words, no less than that of words", means[STOPPED], means[WORDS])]


DIFFERS = {
    "of": "thesis, section 2.5.2",
    "splits": "all artists, without a split",
    "grid": "none is needed",
    "size": "tags of Last.fm 2k instead of tags and biographies of aset400",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "stemming",
        __doc__.splitlines()[0],
        run,
        differs=DIFFERS,
        data=("hetrec2011-lastfm-2k", "mxm"),
        rivals=("snowballstemmer",),
    )
