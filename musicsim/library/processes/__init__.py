"""Worker processes with time and memory limits, for scans, uploads and copies that browsers play."""
