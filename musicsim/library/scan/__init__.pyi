from .ingest import AddReport as AddReport
from .ingest import ProgressCallback as ProgressCallback
from .ingest import add as add
