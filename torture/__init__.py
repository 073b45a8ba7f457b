"""Everything that may go wrong with a library, done to one on purpose: ``python -m torture --minutes 20``."""
