from .ingest import AddReport as AddReport
from .ingest import add as add
