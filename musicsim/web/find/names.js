// Matches of a text in a list of names.

const MAX_NAMES = 20; // of matches below a box

/**
 * Return the entries whose name contains a text; those that begin with it come first.
 * @template T
 * @param {T[]} entries
 * @param {string} text
 * @param {(entry: T) => string} [nameOf]
 * @returns {T[]}
 */
export function matching(entries, text, nameOf = String) {
  const wanted = text.trim().toLowerCase();
  const found = entries.filter((entry) => nameOf(entry).toLowerCase().includes(wanted));
  const begins = (/** @type {T} */ entry) => Number(!nameOf(entry).toLowerCase().startsWith(wanted));
  return found.sort((a, b) => begins(a) - begins(b)).slice(0, MAX_NAMES);
}
