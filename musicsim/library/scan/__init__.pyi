from .ingest import AddReport as AddReport
from .ingest import Scan as Scan
