// A listening test's links: one line per listener, with buttons to copy the link and to open it in a new tab. Names and
// links are set as text, never as markup.

import { applyStyle, fetchStyle } from "../../../web/component.js";
import { button, element } from "../../../web/elements.js";

const STYLE = await fetchStyle("links.css", import.meta.url);
const SHOWN_MS = 2000; // time for which a button shows "Copied"

/** Copy text, also on pages without HTTPS, which have no `navigator.clipboard`. */
async function copy(text, box) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = element("textarea", { value: text });
  box.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  return undefined;
}

function copier(words, label, text) {
  const made = button(label, async () => {
    try {
      await copy(text, made.parentElement);
      made.textContent = "Copied";
    } catch {
      made.textContent = "Select the link and copy it"; // the browser does not allow it
    }
    made.focus();
    setTimeout(() => { made.textContent = words; }, SHOWN_MS);
  }, {}, words);
  return made;
}

export default function ({ data, parentElement }) {
  applyStyle(parentElement, STYLE);
  const rows = data.links.map(({ name, url }) => {
    const open = element("a", { href: url, target: "_blank", rel: "noopener", textContent: "Open" });
    open.setAttribute("aria-label", `Open the link of ${name}`);
    const words = [element("b", { textContent: name }), element("code", { textContent: url })];
    return element("li", {}, ...words, copier("Copy", `Copy the link of ${name}`, url), open);
  });
  const list = element("ul", { className: "links" }, ...rows);
  list.dataset.testid = "listening-links";
  const all = data.links.map(({ name, url }) => `${name}: ${url}`).join("\n");
  if (rows.length > 1) list.append(element("li", {}, copier("Copy all links", "Copy all links", all)));
  parentElement.querySelector(".links")?.remove();
  parentElement.append(list);
}
