// The line of the queue on the map: the songs that were played, and those that come.

const ALONE_MS = 20_000; // a map that was moved later stays where it is
/** @typedef {import("./geometry.js").Pair} Pair */

/**
 * Return the corners of the played line, which is solid, and of the coming line, which is dashed. While a song passes to
 * the next one, `share` of the last step is played.
 * @param {Pair[]} played @param {Pair[]} coming @param {number} share @returns {{solid: Pair[], dashed: Pair[]}}
 */
export function walkLines(played, coming, share) {
  const [before, last] = [played.at(-2), played.at(-1)];
  if (!last) return { solid: [], dashed: [] };
  if (!before || share >= 1) return { solid: played, dashed: [last, ...coming] };
  /** @type {Pair} */
  const tip = [before[0] + (last[0] - before[0]) * share, before[1] + (last[1] - before[1]) * share];
  return { solid: [...played.slice(0, -1), tip], dashed: [tip, last, ...coming] };
}

/** Return true if a song has passed to the next one: the songs are the same, and one more. @param {number[]} before @param {number[]} after */
export function isOneLonger(before, after) {
  return before.length > 0 && after.length === before.length + 1 && before.every((id, i) => after[i] === id);
}

/**
 * Return true if the map moves to the song that plays now: it is out of view, and the listener follows the songs.
 * `sinceMoved` is the time since the listener moved the map.
 * @param {{isInView: boolean, wasInView: boolean, sinceMoved: number}} now
 */
export function followsSong({ isInView, wasInView, sinceMoved }) {
  return !isInView && (wasInView || sinceMoved > ALONE_MS);
}
