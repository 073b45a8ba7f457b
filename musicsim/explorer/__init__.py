"""What the pages and the command line share: models, queries, the map, playlists and jobs."""
