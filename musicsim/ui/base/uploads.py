"""Files and recordings that come through the browser, to search with."""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.api.budgets import network_of
from musicsim.explorer.refresh.map_layout import MapPlacer
from musicsim.explorer.search.query import Example, make_example
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES, decode_upload
from musicsim.explorer.snapshot.map_view import place_vector
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.processes.decoding import Decoding, DecodingDroppedError
from musicsim.ui.base.keys import Key

_POLL_S = 0.25


@dataclass(slots=True, weakref_slot=True)
class Upload:
    """A file or recording that came through the browser; `data` are the bytes that Streamlit holds, not a copy."""

    name: str
    data: bytes
    digest: str  # hash of the bytes
    is_whole: bool = False  # whether all of it is analyzed, however long it is
    decoding: Decoding["audio.Sound"] | None = None
    example: Example | None = None  # under the model of the latest search
    place: Float32Array | None = None  # (2,), of the example on the map
    # the library, model and revision that `example` belongs to; with the upload, so that visitors do not compete
    # for places in a cache
    version: tuple[object, ...] = ()


EXAMPLE: Key[Upload | None] = Key(
    "example", lambda: None, "sound from outside that is searched with", per_library=True, is_kept=True
)


@st.cache_resource(max_entries=4, show_spinner="Unfolding the map…")
def _placer(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> MapPlacer:
    return MapPlacer(_snapshot.X, _snapshot.map)


def _place(snapshot: Snapshot, vector: Float32Array) -> Float32Array:
    """Place a vector on the map; make the placer only if neighbors do not decide the place."""

    def unfold(vectors: Float32Array) -> Float32Array:
        return _placer(snapshot.library.folder, snapshot.revision, snapshot.model_id, snapshot).place(vectors)

    return place_vector(vector, snapshot.map, snapshot.index, unfold)


def example_of(snapshot: Snapshot, upload: Upload) -> Example:
    """Return an upload as an example under the model in use; its `place` is known then.

    Waits for the upload's turn, and shows how many files are ahead of it.

    Raises AudioError if it cannot be decoded or is too short; ModelError if the library has no model yet.
    """
    sound = _wait_for(snapshot, upload)
    # with the revision: meanwhile the upload may have become a song of the library
    version = (snapshot.library.folder, snapshot.revision, snapshot.model_id, upload.is_whole)
    if upload.example is None or upload.version != version:
        example = make_example(snapshot, sound, upload.digest, upload.name)
        upload.place = _place(snapshot, example.vector)
        upload.example, upload.version = example, version
    return upload.example


def _wait_for(snapshot: Snapshot, upload: Upload) -> "audio.Sound":
    place = st.empty()
    while True:
        if upload.decoding is None:
            minutes = MAX_MINUTES if upload.is_whole else MINUTES
            visitor = network_of(st.context.ip_address or "127.0.0.1")  # Streamlit has None for this machine
            upload.decoding = decode_upload(snapshot, upload.data, upload.name, minutes, visitor=visitor)
        try:
            # Streamlit ends this run at what is drawn, when the page is left or the file removed
            while not upload.decoding.within(_POLL_S):
                n_ahead = upload.decoding.n_ahead
                others = "1 file is" if n_ahead == 1 else f"{n_ahead} files are"
                status = f"In line: {others} ahead of yours." if n_ahead else "Listening…"
                place.info(status, icon=":material/hourglass_top:")
            place.empty()
            return upload.decoding.future.result()
        except DecodingDroppedError:  # this page was left for a while
            upload.decoding = None
