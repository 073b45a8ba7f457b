"""Components that several pages share: player, song list, finder, map and jobs."""
