from .library import Library as Library
from .scan.ingest import AddReport as AddReport
from .scan.ingest import Progress as Progress
from .store import Song as Song
from .stores.files import Failure as Failure
from .stores.playlists import SavedPlaylist as SavedPlaylist
