"""Music servers: what they have, what people did there, and what goes there.

May use the library; explorer, commands and pages call it.
"""
