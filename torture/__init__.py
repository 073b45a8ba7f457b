"""Deliberate damage to a library, to test that nothing is lost: ``python -m torture --minutes 20``."""
