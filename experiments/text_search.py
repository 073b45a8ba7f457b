"""Texts that find sound: how well a CLAP pair ranks songs for the genres and tags that they have, next to chance.

Each genre and tag of at least five songs by three artists is a text. All songs are ranked by the cosine between their
vectors and the text's vector, as the app ranks them. "recall@10" is the share of a word's songs in the first ten
places. "MAP" is the mean precision at the places of the word's songs. Both are means over pairs of a word and a song
with it. Chance is the expected value of a random order. Leads over chance have 95 % intervals over the artists.

Songs are those of a library (``--library``), or of a folder of tagged music (``--music``). The pair consists of the
files audio.onnx, text.onnx and tokenizer.json in the folder ``data/experiments/text_search``, unless ``--cache`` names
another. The folder also keeps the library of a folder of music. ``--full`` uses all windows of ten seconds instead of
every third.
"""

from typing import Any

import numpy as np

from benchmarks.support.report import Claim, Progress, Row, Settings, Skipped, at_least, format_lead, main
from experiments.support import game_music
from experiments.support.pieces import open_music
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.extensions.embeddings.adding import add_text
from musicsim.extensions.embeddings.representations import rank_by_text

CACHE = game_music.CACHE.parent / "text_search"
PAIR = ("audio.onnx", "text.onnx", "tokenizer.json")
MIN_SONGS, MIN_ARTISTS = 5, 3
"""With a word that is a text."""
N_FIRST = 10
EVERY = {False: 3, True: 1}  # short protocol, full protocol


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    cache = settings.cache or CACHE
    audio, text, tokenizer = (cache / name for name in PAIR)
    for path in (audio, text, tokenizer):
        if not path.is_file():
            raise Skipped(f"{path} is missing. Put both networks of a CLAP pair and its tokenizer there.")
    with open_music(settings, cache, progress) as library:

        def show(message: str, done: int = 0, total: int = 0, /, **_: object) -> None:
            if done and done % 50 == 0:
                progress(f"{message}: {done} of {total}")

        add_text(library, audio, text, tokenizer, show, every=EVERY[settings.full])
        rank = rank_by_text(library)
        assert rank is not None
        songs = {song.id: song for song in library.songs()}
        tags = library.tags()
        ids = np.sort(rank("music"))  # all songs with a vector
        words_of = [{word.casefold() for word in (songs[i].genre, *(tag for tag, _ in tags.get(i, ()))) if word}
                    for i in ids.tolist()]  # fmt: skip
        artists = np.array([(songs[i].artist or "").casefold() for i in ids.tolist()])
        texts = find_texts(words_of, artists)
        if not texts:
            raise Skipped(f"No genre or tag has {MIN_SONGS} songs by {MIN_ARTISTS} artists.")
        settings.facts["data"] = f"{len(ids)} songs, {len(texts)} words"
        orders = {word: np.searchsorted(ids, rank(word)) for word in texts}
    return measure(texts, orders, artists, settings.seed)


def find_texts(words_of: list[set[str]], artists: np.ndarray) -> dict[str, BoolArray]:
    """Return for each word with enough songs and artists, but not all songs, whether each song has it."""
    texts = {}
    for word in sorted(set().union(*words_of)):
        has = np.array([word in words for words in words_of], dtype=np.bool_)
        if MIN_SONGS <= has.sum() < len(has) and len(set(artists[has].tolist()) - {""}) >= MIN_ARTISTS:
            texts[word] = has
    return texts


def precisions(order: Int64Array, has: BoolArray) -> tuple[Float64Array, Int64Array]:
    """Return the precision at the place of each song with a word, and its place from 0; both in the order of songs."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    found = np.cumsum(has[order]) / np.arange(1, len(order) + 1)
    return found[place[has]], place[has]


def expected_precision(n_songs: int, n_relevant: int) -> float:
    """Return the expected average precision of a random order."""
    harmonic = float((1 / np.arange(1, n_songs + 1)).sum())
    return (harmonic + (n_relevant - 1) / (n_songs - 1) * (n_songs - harmonic)) / n_songs


def measure(
    texts: dict[str, BoolArray], orders: dict[str, Int64Array], artists: np.ndarray, seed: int
) -> tuple[list[Row], list[Claim]]:
    """Return a row for each word and one for all, and the claims."""
    rows: list[dict[str, Any]] = []
    of_pairs: list[Float64Array] = []
    groups: list[str] = []
    for word, has in texts.items():
        n, n_relevant = len(has), int(has.sum())
        precision, place = precisions(orders[word], has)
        chances = min(N_FIRST, n) / n, expected_precision(n, n_relevant)
        of_pairs.append(np.stack([place < N_FIRST, precision, *(np.full(n_relevant, one) for one in chances)]))
        groups += artists[has].tolist()
        rows.append({"word": word, "songs": n_relevant} | _means(of_pairs[-1]))
    pairs = np.concatenate(of_pairs, axis=1)
    total: dict[str, Any] = {"word": "all", "songs": pairs.shape[1]} | _means(pairs)
    claims = []
    for number, name in enumerate(("recall@10", "MAP")):
        mean, low, high = bootstrap_pairs(pairs[number], pairs[number + 2], groups, random_state=seed)
        total[f"lead in {name}"] = format_lead(mean, low, high)
        claims.append(at_least(f"lower end of the lead over chance, {name}", low, 0.0))
    return [*rows, total], claims


def _means(pairs: Float64Array) -> dict[str, float]:
    names = ("recall@10", "MAP", "recall@10 by chance", "MAP by chance")
    return dict(zip(names, pairs.mean(axis=1).tolist(), strict=True))


if __name__ == "__main__":
    main(
        "text_search", __doc__.splitlines()[0], run,
        rivals=("onnxruntime", "tokenizers"), takes_library=True, takes_music=True,
        short="every third window of ten seconds",
    )  # fmt: skip
