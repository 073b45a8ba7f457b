"""Services for the pages, the command line and the HTTP interface: models, search, the map, playlists and jobs."""
