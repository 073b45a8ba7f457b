// The queue of the player as a value: its tracks, and the index of the current one, -1 if there is none. Changes are
// functions that return a new queue.

/**
 * @typedef {{uid: number, song_id: number, [name: string]: any}} Track
 * @typedef {{tracks: Track[], index: number}} Queue
 */

/** Return the queue without a track. If it was the current one, the track in its place is current. @param {Queue} queue @param {number} uid @returns {Queue} */
export function remove({ tracks, index }, uid) {
  const at = tracks.findIndex((track) => track.uid === uid);
  if (at < 0) return { tracks, index };
  const rest = tracks.filter((track) => track.uid !== uid);
  return { tracks: rest, index: at < index ? index - 1 : Math.min(index, rest.length - 1) };
}

/** Move a track up or down; the current track stays current. @param {Queue} queue @param {number} uid @param {number} by @returns {Queue} */
export function move({ tracks, index }, uid, by) {
  const from = tracks.findIndex((track) => track.uid === uid);
  const to = from + by;
  if (from < 0 || to < 0 || to >= tracks.length) return { tracks, index };
  const moved = tracks.toSpliced(from, 1).toSpliced(to, 0, tracks[from]);
  return { tracks: moved, index: moved.indexOf(tracks[index]) };
}

/** Put the songs after the current one in an order; songs that it lacks come last. @param {Queue} queue @param {number[]} songs ids @returns {Queue} */
export function order({ tracks, index }, songs) {
  const rest = tracks.slice(index + 1);
  const ordered = songs.flatMap((song) => {
    const at = rest.findIndex((track) => track.song_id === song);
    return at < 0 ? [] : rest.splice(at, 1);
  });
  return { tracks: [...tracks.slice(0, index + 1), ...ordered, ...rest], index };
}

/** Replace the queue around the current track; if the new queue lacks its song, it comes after the first `nBefore` tracks. @param {Queue} queue @param {Track[]} entries @param {number} nBefore @returns {Queue} */
export function follow({ tracks, index }, entries, nBefore) {
  const track = tracks[index];
  if (!track) return { tracks: entries, index: -1 };
  const at = entries.findIndex((entry) => entry.song_id === track.song_id);
  if (at >= 0) return { tracks: entries.with(at, track), index: at };
  return { tracks: entries.toSpliced(nBefore, 0, track), index: Math.min(nBefore, entries.length) };
}

/** Give the songs that the server has described now what it knows; they keep their places. @param {Track[]} tracks @param {Track[]} described @returns {Track[]} */
export function describe(tracks, described) {
  const known = new Map(described.map((track) => [track.song_id, track]));
  const add = (/** @type {Track} */ track) => ({ ...track, ...known.get(track.song_id), uid: track.uid, is_described: known.has(track.song_id) });
  return tracks.map((track) => (track.is_described === false ? add(track) : track));
}

/** Return the index of the next track that has not failed, or -1. @param {Queue} queue @param {Set<number>} failed @returns {number} */
export function nextPlayable({ tracks, index }, failed) {
  return tracks.findIndex((track, i) => i > index && !failed.has(track.uid));
}

/** Return the ids of songs that must not follow soon, the latest first. @param {number[]} lately @param {Track[]} tracks @param {number} most @returns {number[]} */
export function recentSongs(lately, tracks, most) {
  const songs = [...lately, ...tracks.map((track) => track.song_id)].reverse();
  return [...new Set(songs)].slice(0, most);
}
