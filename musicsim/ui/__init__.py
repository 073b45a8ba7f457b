"""Parts of pages: session state, cached openers, the song list, the map and the player."""
