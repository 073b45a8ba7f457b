from .library import Library as Library
from .scan.ingest import AddReport as AddReport
from .stores.files import Failure as Failure
from .stores.playlists import SavedPlaylist as SavedPlaylist
from .stores.songs import Song as Song
