"""Networks that map texts to the space of a learned ear's vectors, such as the text network of CLAP."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import LibraryError, ModelError
from musicsim.extensions.embeddings.networks import Network
from musicsim.extensions.embeddings.onnx_models import hash_network
from musicsim.extensions.embeddings.sessions import find_output, open_session, shorten_error
from musicsim.extras import install_command
from musicsim.library import Library
from musicsim.library.disk.archives import shorten_message
from musicsim.library.disk.arrays import atomic_path

_NETWORK, _TOKENIZER, _ABOUT = "text.onnx", "tokenizer.json", "text.json"  # in the folder of the audio network
_PACKAGES = ("onnxruntime", "tokenizers")
_TRIAL = "calm piano"
_MAX_TOKENS = 77  # CLAP was trained on texts of this length
_ROWS_AT_ONCE = 8_192
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PADDING = "<pad>"


@dataclass(frozen=True, slots=True)
class TextNetwork:
    """An ONNX network that maps tokens to a vector, and the tokenizer that it was trained with."""

    path: Path
    tokenizer: Path
    digest: str  # hash of the ONNX file

    @classmethod
    def at(cls, path: Path, tokenizer: Path) -> "TextNetwork":
        """Return a network from two files; raises LibraryError if the network cannot be used."""
        return cls(path, tokenizer, hash_network(path))

    def embed(self, text: str) -> Float64Array:
        """Return the vector of a text, of length 1. Raises ModelError, or LibraryError if a package is missing."""
        return _load(self).embed(text)

    def keep(self, folder: Path) -> None:
        """Copy the network into the folder of its audio network, in place of an earlier one."""
        (folder / _ABOUT).unlink(missing_ok=True)  # the last file to be written says that all are there
        for name, source in ((_NETWORK, self.path), (_TOKENIZER, self.tokenizer)):
            with atomic_path(folder / name) as temporary:
                shutil.copyfile(source, temporary)
        with atomic_path(folder / _ABOUT) as temporary:
            temporary.write_text(json.dumps({"digest": self.digest}), encoding="utf-8")


def count_dimensions(network: TextNetwork) -> int:
    """Run a network once, and return the length of its vectors."""
    return len(network.embed(_TRIAL))


class _Loaded:
    """A loaded network. Raises ModelError if the files cannot be loaded, or the inputs are not tokens."""

    def __init__(self, network: TextNetwork) -> None:
        self._name = network.path.name
        self._session = open_session(network.path, network.digest)
        self._inputs = {one.name: one for one in self._session.get_inputs()}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= {"input_ids", "attention_mask"}:
            names = shorten_message(", ".join(self._inputs) or "none")
            raise ModelError(f"{self._name}: its inputs are {names}; they must be input_ids and attention_mask.")
        if not all(one.type in _INTEGERS and len(one.shape) == 2 for one in self._inputs.values()):
            raise ModelError(f"{self._name}: its inputs must be integers of shape (batch, tokens).")
        self._output = find_output(self._session, "", self._name)
        self._tokenizer = _read_tokenizer(network.tokenizer, self._inputs["input_ids"].shape[1])

    def embed(self, text: str) -> Float64Array:
        tokens = self._tokenizer.encode(text)
        values = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask}
        inputs = {name: np.array([values[name]], _INTEGERS[one.type]) for name, one in self._inputs.items()}
        try:
            (output,) = self._session.run([self._output], inputs)
        except MemoryError:
            raise
        except Exception as error:
            raise ModelError(f"{self._name}: it fails on {len(tokens.ids)} tokens ({shorten_error(error)}).") from error
        vector = np.asarray(output, dtype=np.float64)
        if vector.ndim != 2 or len(vector) != 1 or not np.isfinite(vector).all() or not vector.any():
            raise ModelError(f"{self._name}: its output {self._output} must be one finite vector per text.")
        return vector[0] / np.linalg.norm(vector[0])


_load = lru_cache(maxsize=1)(_Loaded)


def _read_tokenizer(path: Path, length: Any) -> Any:
    """Read a tokenizer that cuts long texts; if the network takes a fixed `length`, it also pads short ones."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise LibraryError(f"{path.name} needs the package tokenizers. Run: {install_command('ear')}") from error
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LibraryError(f"{path.name} is missing. Use the file tokenizer.json of the text network.") from error
    except Exception as error:  # the package raises plain exceptions
        problem = f"it is not a tokenizer ({shorten_error(error)}). Use the file tokenizer.json of the text network"
        raise ModelError(f"{path.name}: {problem}.") from error
    tokenizer.no_padding()
    if isinstance(length, int):
        tokenizer.enable_padding(length=length, pad_id=tokenizer.token_to_id(_PADDING) or 0, pad_token=_PADDING)
    tokenizer.enable_truncation(length if isinstance(length, int) else _MAX_TOKENS)
    return tokenizer


def rank_by_text(library: Library) -> Callable[[str], Int64Array] | None:
    """Return a function that sorts songs by their cosine to a text; None if the library has no text network.

    It is also None if a package is not installed, so that words have their other meanings only.
    """
    if not all(map(find_spec, _PACKAGES)):
        return None
    for record in sorted(library.models.all(), key=lambda record: record.created_at, reverse=True):
        network = _find_network(library, record.settings.get("vectors", ""))
        if network is not None:
            return partial(_rank_songs, library, record.id, network)
    return None


def _find_network(library: Library, key: str) -> TextNetwork | None:
    """Return the text network next to an audio network of a library."""
    try:
        folder = Network(library.folder, key).folder
        digest = str(json.loads((folder / _ABOUT).read_text(encoding="utf-8"))["digest"])
    except (LibraryError, OSError, ValueError, TypeError, KeyError):  # there are no networks, or they are damaged
        return None
    return TextNetwork(folder / _NETWORK, folder / _TOKENIZER, digest)


def _rank_songs(library: Library, model_id: str, network: TextNetwork, text: str) -> Int64Array:
    """Return the ids of all songs with a vector, the nearest first."""
    vector = network.embed(text)
    songs = library.models.features(model_id)
    cosines = np.empty(len(songs.song_ids))
    for start in range(0, len(cosines), _ROWS_AT_ONCE):
        rows = np.asarray(songs.X[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        cosines[start : start + _ROWS_AT_ONCE] = rows @ vector / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
    return songs.song_ids[np.argsort(-cosines, kind="stable")]
