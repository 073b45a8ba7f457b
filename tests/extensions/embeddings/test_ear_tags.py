"""Tags that a network predicts: those that stand out in both songs, checked on the library's own tags."""

import numpy as np
import pytest

from musicsim.extensions.embeddings.networks import OnnxModel, try_audio
from musicsim.extensions.embeddings.representations import Network, find_shared_tags, keep_network
from tests.extensions.embeddings.test_ear import write_network
from tests.learning import hush

TAGS = ("guitar", "piano", "slow", "80s", "loud")
N_COLUMNS = 192  # of the network in test_ear


@pytest.fixture
def network(tiny_library, tmp_path):
    """A network whose last columns are tags, with predictions of about .5 for all songs."""
    model = OnnxModel.on_patches(write_network(tmp_path / "net.onnx"), "musicnn")
    return Network(tiny_library.folder, keep_network(tiny_library, *try_audio(tiny_library, model, hush), "net", TAGS))


def keep(network, hashes, probabilities):
    rows = network.read_rows()
    for digest, row in zip(hashes, probabilities, strict=True):
        vector = np.zeros(N_COLUMNS, np.float32)
        vector[-len(TAGS) :] = row
        rows.append(digest, vector)


def predictions(n=40):
    return np.random.default_rng(0).uniform(0.4, 0.6, (n, len(TAGS)))


def hashes_of(library, n=40):
    songs = [song.content_hash for song in library.songs()]
    return songs + [f"{i:032x}" for i in range(n - len(songs))]


def test_tags_that_stand_out_in_both_songs(tiny_library, network):
    hashes, p = hashes_of(tiny_library), predictions()
    p[0] = [0.75, 0.9, 0.5, 0.95, 0.95]
    p[1] = [0.75, 0.5, 0.5, 0.95, 0.95]
    keep(network, hashes, p)
    key = network.model.key
    assert find_shared_tags(tiny_library, key, hashes[:2]) == ["loud", "guitar"], "piano is in one, 80s is a decade"
    assert find_shared_tags(tiny_library, key, [hashes[0], hashes[5]]) == []
    assert find_shared_tags(tiny_library, key, [hashes[0], "f" * 32]) == [], "not described yet"
    upload = {key: np.concatenate([np.zeros(N_COLUMNS - len(TAGS)), p[1]]).astype(np.float32)}
    assert find_shared_tags(tiny_library, key, [hashes[0], upload]) == ["loud", "guitar"]
    assert find_shared_tags(tiny_library, key, [hashes[0], {}]) == []


def test_small_library_has_no_typical_prediction(tiny_library, network):
    hashes, p = hashes_of(tiny_library, 12), predictions(12)
    p[:2, 0] = 0.99
    keep(network, hashes, p)
    assert find_shared_tags(tiny_library, network.model.key, hashes[:2]) == []


def test_tags_are_checked_on_own_tags(tiny_library, network):
    hashes, p = hashes_of(tiny_library), predictions()
    songs = tiny_library.songs()
    p[:2] = 0.9
    p[:6, 0] = np.linspace(0.9, 0.7, 6)  # guitar: all six tagged songs above all others
    p[:6, 4] = [0.9, 0.9, 0.1, 0.1, 0.1, 0.1]  # loud: four of six below all others
    rows = [{"song_id": song.id, "tag": tag, "weight": 1.0} for song in songs[:6] for tag in ("guitar", "loud")]
    rows += [{"song_id": song.id, "tag": "other", "weight": 1.0} for song in songs[6:]]
    tiny_library.add_tags(rows)
    keep(network, hashes, p)
    found = find_shared_tags(tiny_library, network.model.key, hashes[:2])
    assert "guitar (100% right on your tags)" in found
    assert not any(tag.startswith("loud") for tag in found), "the network is wrong about it here"
