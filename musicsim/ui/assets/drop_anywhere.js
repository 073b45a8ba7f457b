// Takes a file that is dropped anywhere on the page, and gives it to the upload box behind the button "Add sound".

import { closeIfGone } from "./component.js";

const BUTTON = ".st-key-listen_sound button";
const BOX = ".st-key-search_file input[type=file]";
const STYLE = `
  position: fixed; inset: 0; z-index: 1000000; display: grid; place-items: center; pointer-events: none;
  background: color-mix(in srgb, Canvas 82%, transparent); color: CanvasText; font: 600 1.6rem sans-serif;
  border: 4px dashed #00796b;`;

function press() {
  const button = document.querySelector(BUTTON);
  if (button instanceof HTMLElement) button.click();
}

/** Return the first element of a selector, once it exists. */
function appearing(selector) {
  return new Promise((found) => {
    const look = () => document.querySelector(selector);
    if (look()) return found(look());
    const watch = new MutationObserver(() => {
      if (!look()) return;
      watch.disconnect();
      found(look());
    });
    watch.observe(document.body, { childList: true, subtree: true });
  });
}

async function give(files) {
  if (!document.querySelector(BOX)) press();
  const box = await appearing(BOX);
  box.files = files;
  box.dispatchEvent(new Event("change", { bubbles: true }));
}

function overlay() {
  const made = document.createElement("div");
  made.style.cssText = STYLE;
  made.textContent = "Drop a sound file to hear similar songs";
  return made;
}

const state = { given: false, taken: null };
let stop = () => {}; // ends what the previous data started

export default function ({ data, parentElement }) {
  stop();
  if (state.given && state.taken !== data.taken && document.querySelector(BOX)) {
    press(); // closes the popover with the box
    state.given = false;
  }
  state.taken = data.taken;
  const shown = overlay();
  const closing = new AbortController();
  const on = (name, act) => document.addEventListener(name, act, { capture: true, signal: closing.signal });
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  on("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.append(shown);
  });
  on("dragleave", (event) => event.relatedTarget === null && shown.remove());
  on("drop", (event) => {
    shown.remove();
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.stopPropagation();
    state.given = true;
    const only = new DataTransfer();
    only.items.add(event.dataTransfer.files[0]);
    give(only.files);
  });
  stop = () => {
    closing.abort();
    shown.remove();
  };
  return closeIfGone(parentElement, stop);
}
