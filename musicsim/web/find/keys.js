// What a key does in the search box.

const STEPS = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowUp: -1 });

/**
 * Return what a key does, or null if it does nothing.
 * @param {string} key
 * @param {{isOpen: boolean, text: string, nLines: number, marked: number}} box the list below it, its text, and the marked line
 * @returns {{act: "show" | "hide" | "enter" | "empty" | "stay"} | {act: "mark", line: number} | null}
 */
export function actOfKey(key, { isOpen, text, nLines, marked }) {
  if (key in STEPS) {
    if (!isOpen) return { act: "show" };
    return nLines ? { act: "mark", line: (marked + STEPS[key] + nLines) % nLines } : { act: "stay" };
  }
  if (key === "Enter" && text.trim()) return { act: "enter" };
  if (key === "Escape" && isOpen) return { act: "hide" };
  return key === "Escape" && text ? { act: "empty" } : null;
}
