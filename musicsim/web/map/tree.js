// Which item of a tree a key selects, as in the tree view pattern of the ARIA Authoring Practices. Level 1 items may have
// items of level 2 after them.

/**
 * @typedef {{name: string, level: number, isOpen: boolean | null}} Item `isOpen` is null if an item has no children
 * @typedef {{at: number, isOpen?: boolean}} Move the selected item, and whether it opens (true) or closes (false)
 */

/** Return the places of the items that are not inside a closed one. @param {Item[]} items @returns {number[]} */
export function visibleItems(items) {
  let isShown = true;
  return items.flatMap(({ level, isOpen }, i) => {
    if (level > 1) return isShown ? [i] : [];
    isShown = isOpen === true;
    return [i];
  });
}

/** Return what a key does; null if it has no meaning here. @param {Item[]} items @param {number} at @param {string} key @returns {Move | null} */
export function moveInTree(items, at, key) {
  const visible = visibleItems(items);
  const place = visible.indexOf(at);
  const { level, isOpen } = items[at];
  const go = (/** @type {number | undefined} */ to) => ({ at: to ?? at });
  switch (key) {
    case "ArrowDown": return go(visible[place + 1]);
    case "ArrowUp": return go(visible[place - 1]);
    case "Home": return go(visible[0]);
    case "End": return go(visible.at(-1));
    case "ArrowRight":
      if (isOpen === false) return { at, isOpen: true };
      return go(isOpen ? at + 1 : at);
    case "ArrowLeft":
      if (isOpen) return { at, isOpen: false };
      return go(level > 1 ? items.findLastIndex((item, i) => i < at && item.level < level) : at);
    default: return null;
  }
}

/** Return the next visible item whose name begins with the typed letters; null if there is none. @param {Item[]} items @param {number} at @param {string} letters */
export function findByLetters(items, at, letters) {
  const isRepeated = [...letters].every((letter) => letter === letters[0]);
  const wanted = (isRepeated ? letters[0] : letters).toLowerCase();
  const visible = visibleItems(items);
  const place = visible.indexOf(at) + (isRepeated ? 1 : 0); // the same letter again goes on
  const order = [...visible.slice(place), ...visible.slice(0, place)];
  return order.find((i) => items[i].name.toLowerCase().startsWith(wanted)) ?? null;
}

/** Return the song to play for the n-th click on an item: songs without a thumb down take turns. @param {number[]} typical @param {number} n @param {(id: number) => boolean} isDisliked @returns {number | null} */
export function typicalSong(typical, n, isDisliked) {
  const liked = typical.filter((id) => !isDisliked(id));
  return liked.length ? liked[n % liked.length] : null;
}
