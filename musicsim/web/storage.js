// The browser's storage; the client also works if it is disabled or full.

/**
 * Read a value, or write it if it is given.
 * @param {"localStorage" | "sessionStorage"} kind
 * @param {string} key
 * @param {unknown} [value]
 */
export function stored(kind, key, value) {
  try {
    if (value === undefined) return JSON.parse(window[kind].getItem(key) ?? "null");
    window[kind].setItem(key, JSON.stringify(value));
  } catch (error) {
    console.debug("no storage", error);
  }
  return null;
}
