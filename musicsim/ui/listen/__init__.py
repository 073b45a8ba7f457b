"""The Listen page: the map, the song that plays, and a queue that goes on."""
