"""Networks that describe each song of a library: stored with it, so that new songs get vectors, too."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from musicsim._arrays import Float32Array
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.embeddings.onnx_models import OnnxModel, VectorRows, add_digest, find_width
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_folder
from musicsim.progress import Progress

_FOLDER = "embeddings"
_NETWORK, _ABOUT, _ROWS = "network.onnx", "about.json", "vectors.rows"


@dataclass(frozen=True, slots=True)
class AboutNetwork:
    label: str  # name of the imported file
    front_end: str
    output: str
    every: int
    digest: str  # hash of the ONNX file
    width: int  # columns of the network's output
    tags: tuple[str, ...] = ()  # names of the last columns, which are probabilities and not compared


class Network:
    """A network in a library's folder ``embeddings``, and the vectors that it computed."""

    def __init__(self, library_folder: Path, key: str) -> None:
        # the key in an imported model can be any string, such as "../.."
        self.folder = library_folder / _FOLDER / key
        if not (key.isalnum() and (self.folder / _NETWORK).is_file()):
            raise NotFoundError("this model's network is not in this library. Add the network first.")
        try:
            facts = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
            self.about = AboutNetwork(**facts | {"tags": tuple(facts["tags"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LibraryError(f"the model's network is damaged ({key}/{_ABOUT}). Add the network again.") from error

    @property
    def n_dimensions(self) -> int:
        """Number of columns that are compared."""
        return self.about.width - len(self.about.tags)

    @property
    def model(self) -> OnnxModel:
        about, path = self.about, self.folder / _NETWORK
        return OnnxModel.on_patches(path, about.front_end, about.output, about.every, about.digest)

    def read_rows(self) -> VectorRows:
        """Return the vectors computed so far, with the tags in the last columns."""
        return VectorRows(self.folder / _ROWS, self.about.width)


def try_audio(library: Library, model: OnnxModel, progress: Progress) -> tuple[OnnxModel, int]:
    """Return a network with its hash, and the width of its output in a trial run; raises ModelError if it fails."""
    model = add_digest(model)
    return model, find_width(library, model, progress)


def keep_network(library: Library, model: OnnxModel, width: int, label: str, tags: tuple[str, ...] = ()) -> str:
    """Copy a network into a library after a trial run, and return its key."""
    folder = library.folder / _FOLDER / model.key
    about = AboutNetwork(label[:120], model.front_end, model.output, model.every, model.digest, width, tags)
    if folder.is_dir():
        os.utime(folder)  # protects the folder from the next sweep
    else:
        with atomic_folder(folder) as temporary:
            shutil.copyfile(model.path, temporary / _NETWORK)
            (temporary / _ABOUT).write_text(json.dumps(asdict(about)), encoding="utf-8")
    return model.key


class LibraryEars:
    """The networks of a library, for a scan; none if onnxruntime is not installed."""

    def __init__(self, library_folder: Path) -> None:
        self._by_key: dict[str, Network] = {}
        self._rows: dict[str, VectorRows] = {}
        if find_spec("onnxruntime") is None:
            return
        for path in sorted(library_folder.glob(f"{_FOLDER}/*/{_NETWORK}")):
            with suppress(LibraryError):  # `musicsim doctor` reports damaged networks
                self._by_key[path.parent.name] = Network(library_folder, path.parent.name)

    @property
    def networks(self) -> list[OnnxModel]:
        return [network.model for network in self._by_key.values()]

    def keep(self, content_hash: str, vectors: Mapping[str, Float32Array]) -> None:
        for key in vectors.keys() & self._by_key.keys():
            rows = self._rows.setdefault(key, self._by_key[key].read_rows())
            if content_hash not in rows.row_of:
                rows.append(content_hash, vectors[key])
