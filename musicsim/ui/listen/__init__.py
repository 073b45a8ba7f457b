"""The Listen page: the map, the song that is playing, and a queue that continues."""
