"""Files on disk: atomic writes, bounded reads, and cleanup after a kill. Independent of tables and songs."""
