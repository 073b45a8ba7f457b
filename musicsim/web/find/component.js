// A search box on a page of Streamlit. It searches without the page's script, which hears only of choices.

import { ask } from "../addresses.js";
import { closeIfGone } from "../component.js";
import { Finder } from "./finder.js";
import { matching } from "./names.js";

/** @type {WeakMap<HTMLElement | ShadowRoot, Finder>} the boxes on the page */
const boxes = new WeakMap();

/** @param {import("../component.js").Component} component */
export default function ({ data, parentElement, setTriggerValue }) {
  const options = {
    label: data.label,
    help: data.help,
    placeholder: data.placeholder,
    chosen: data.chosen,
    search: searchOf(data),
    onPick: ({ kind, value }) => setTriggerValue("picked", { kind, value }),
    onDrop: (/** @type {string} */ value) => setTriggerValue("dropped", value),
  };
  const box = boxes.get(parentElement);
  if (box) {
    box.describe(options);
    box.setChosen(data.chosen);
  } else {
    const root = document.createElement("div");
    parentElement.append(root);
    boxes.set(parentElement, new Finder(root, options));
  }
  return closeIfGone(parentElement, () => { boxes.get(parentElement)?.close(); boxes.delete(parentElement); });
}

/** Return a function that finds matches: among given entries, among the names of an option, or in the library. */
function searchOf({ entries, option, kinds, library }) {
  if (entries) return async (text) => ({ matches: matching(entries, text, ({ title }) => title) });
  if (!option) return (text, signal) => ask("api/find", { text, kind: kinds, library }, { signal });
  return async (text, signal) => {
    const names = await ask(`api/options/${option}`, { text, library }, { signal });
    return { matches: names.map((name) => ({ kind: "name", value: name, title: name, sub: "" })) };
  };
}
