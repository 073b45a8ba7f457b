"""Files and recordings from the browser that are used as queries."""

from dataclasses import dataclass

import streamlit as st

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.explorer.refresh.map_layout import MapPlacer
from musicsim.explorer.search.query import Example, make_example
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES, decode_upload
from musicsim.explorer.snapshot.map_view import place_vector
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.processes.decoding import Decoding, DecodingDroppedError
from musicsim.rounds import network_of
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import BY_STATE
from musicsim.wording import count

_POLL_S = 0.25


@dataclass(slots=True, weakref_slot=True)
class Upload:
    """A file or recording from the browser; `data` are the bytes that Streamlit holds, not a copy."""

    name: str
    data: bytes
    digest: str  # hash of the bytes
    is_whole: bool = False  # True if the whole file is analyzed, regardless of its length
    decoding: Decoding["audio.Sound"] | None = None
    example: Example | None = None  # the upload as an example under the model of the latest search
    place: Float32Array | None = None  # (2,), position of the example on the map
    # library, model and revision of `example`; stored here because visitors would evict each other from a cache
    version: tuple[object, ...] = ()
    job_id: int | None = None  # the job that adds the upload to the library


EXAMPLE: Key[Upload | None] = Key("example", lambda: None, "the upload to search with", per_library=True, is_kept=True)


@st.cache_resource(max_entries=4, show_spinner="Unfolding the map…", hash_funcs=BY_STATE)
def _placer(snapshot: Snapshot) -> MapPlacer:
    return MapPlacer(snapshot.X, snapshot.map)


def example_of(snapshot: Snapshot, upload: Upload) -> Example:
    """Return an upload as an example under the active model, and set its `place`.

    While the upload waits in line, the page shows the number of files ahead of it.

    Raises AudioError if the upload cannot be decoded or is too short, and ModelError if the library has no model.
    """
    sound = _wait_for(snapshot, upload)
    # includes the revision, because the upload may have been added to the library in the meantime
    version = (snapshot.library.place, snapshot.revision, snapshot.model_id, upload.is_whole)
    if upload.example is None or upload.version != version:
        example = make_example(snapshot, sound, upload.digest, upload.name)
        upload.place = place_vector(  # creates the placer only if neighbors do not determine the position
            example.vector, snapshot.map, snapshot.index, lambda vectors: _placer(snapshot).place(vectors)
        )
        upload.example, upload.version = example, version
    return upload.example


def _wait_for(snapshot: Snapshot, upload: Upload) -> "audio.Sound":
    status = st.empty()
    while True:
        if upload.decoding is None:
            minutes = MAX_MINUTES if upload.is_whole else MINUTES
            visitor = network_of(st.context.ip_address or "127.0.0.1")  # Streamlit returns None for a local client
            upload.decoding = decode_upload(snapshot, upload.data, upload.name, minutes, visitor=visitor)
        try:
            # Streamlit ends this run at the next element if the user leaves the page or removes the file
            while not upload.decoding.wait(_POLL_S):
                n_ahead = upload.decoding.n_ahead
                message = f"In line: {count(n_ahead, 'file')} ahead of yours." if n_ahead else "Analyzing…"
                status.info(message, icon=":material/hourglass_top:")
            status.empty()
            return upload.decoding.future.result()
        except DecodingDroppedError:  # the user was on another page for a while
            upload.decoding = None
