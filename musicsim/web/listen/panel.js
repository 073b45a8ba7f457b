// Panels that open below a button and close with Escape or a click elsewhere, and menus in them.

import { button, element } from "../elements.js";

const GAP_PX = 4;
let panels = 0;

/**
 * Return a button and the panel that it opens. `fill` draws the panel's content each time it opens.
 * @param {HTMLButtonElement} opener @param {string} label @param {(panel: HTMLElement) => void} fill
 */
export function panelBelow(opener, label, fill) {
  const panel = element("div", { className: "panel", popover: "auto", ariaLabel: label });
  panels += 1;
  panel.id = `musicsim-panel-${panels}`;
  panel.setAttribute("role", "dialog");
  opener.popoverTargetElement = panel;
  opener.setAttribute("aria-haspopup", "dialog");
  opener.setAttribute("aria-expanded", "false");
  panel.addEventListener("beforetoggle", (/** @type {any} */ { newState }) => newState === "open" && fill(panel));
  panel.addEventListener("toggle", (/** @type {any} */ { newState }) => {
    opener.setAttribute("aria-expanded", String(newState === "open"));
    if (newState === "open") placeBelow(panel, opener);
  });
  return panel;
}

/** Place a panel below its button, inside the window. @param {HTMLElement} panel @param {HTMLElement} opener */
export function placeBelow(panel, opener) {
  const box = opener.getBoundingClientRect();
  const width = document.documentElement.clientWidth;
  const left = Math.max(GAP_PX, Math.min(box.left, width - panel.offsetWidth - GAP_PX));
  const below = window.innerHeight - box.bottom - 2 * GAP_PX;
  const isBelow = below >= Math.min(panel.scrollHeight, box.top);
  Object.assign(panel.style, {
    left: `${left}px`,
    top: isBelow ? `${box.bottom + GAP_PX}px` : "auto",
    bottom: isBelow ? "auto" : `${window.innerHeight - box.top + GAP_PX}px`,
    maxHeight: `${Math.max(160, isBelow ? below : box.top - 2 * GAP_PX)}px`,
  });
}

/** Return an entry of a menu, which closes the menu. @param {string} label @param {() => void} act */
export function menuItem(label, act, look = {}) {
  const made = button(label, () => {
    /** @type {HTMLElement | null} */ (made.closest("[popover]"))?.hidePopover();
    act();
  }, { className: "item", ...look }, label);
  return made;
}
