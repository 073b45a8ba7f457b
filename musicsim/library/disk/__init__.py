"""Files on disk: atomic writes, bounded reads, and cleanup after a crash. These modules do not use tables or songs."""
