// The search boxes on the page, so that a key can go to the first one.

/** @type {Set<HTMLInputElement>} */
const boxes = new Set();

/** Note a search box; boxes that left the page are forgotten. @param {HTMLInputElement} input */
export function noteBox(input) {
  for (const old of boxes) if (!old.isConnected) boxes.delete(old);
  boxes.add(input);
}

/** Give the focus to the highest search box, and return true if there is one. */
export function focusFirstBox() {
  const others = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll('input[aria-label^="Search" i]'));
  const seen = [...boxes, ...others].filter((box) => box.isConnected && !box.disabled && box.getClientRects().length > 0);
  const top = (/** @type {HTMLInputElement} */ box) => box.getBoundingClientRect().top;
  const [first] = seen.sort((a, b) => top(a) - top(b));
  first?.focus();
  return Boolean(first);
}
