// Draws a view of work: lines of text, and bars. Words can come from file tags: they are set as text.

import { element } from "../elements.js";

/** Draw a view, and keep the elements whose kinds stay the same. @param {HTMLElement} root @param {{parts: import("./watching.js").Part[]}} view */
export function draw(root, { parts }) {
  const kinds = parts.map(({ share }) => (share === null ? "text" : "bar")).join(" ");
  if (root.dataset.kinds !== kinds) {
    root.replaceChildren(...parts.map(({ share }) => (share === null ? element("p") : makeBar())));
    root.dataset.kinds = kinds;
  }
  parts.forEach((part, i) => { fill(/** @type {HTMLElement} */ (root.children[i]), part); });
}

function makeBar() {
  const track = element("div", "track", element("div"));
  for (const [name, value] of Object.entries({ role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" })) {
    track.setAttribute(name, value);
  }
  return element("div", "bar", element("p"), track);
}

function fill(/** @type {HTMLElement} */ made, { text, share, title }) {
  const line = share === null ? made : /** @type {HTMLElement} */ (made.firstElementChild);
  const said = [title, text].filter(Boolean).join(" · ");
  if (line.dataset.said !== said) {
    line.dataset.said = said;
    line.replaceChildren(...(title ? [element("strong", { textContent: title }), ` · ${text}`] : [text]));
  }
  if (share === null) return;
  const percent = Math.round(100 * Math.min(1, Math.max(0, share)));
  const track = /** @type {HTMLElement} */ (made.lastElementChild);
  track.setAttribute("aria-valuenow", String(percent));
  track.setAttribute("aria-label", said);
  /** @type {HTMLElement} */ (track.firstElementChild).style.width = `${percent}%`;
}
