"""Parts that several pages share: player, song list, finder, map, jobs."""
