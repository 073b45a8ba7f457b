// A list of songs to play, reorder, remove or search with. All strings come from file tags and are set as text, never
// as markup.

import { resolve } from "../addresses.js";
import { applyStyle, fetchStyle } from "../component.js";
import { element, button as namedButton, iconButton as namedIcon } from "../elements.js";

const STYLE = await fetchStyle("list.css", import.meta.url);

function button(symbol, label, act, disabled = false) {
  return namedButton(label, act, { title: label, disabled }, symbol);
}

// Strokes on a 24 x 24 grid, because fonts draw these symbols too differently.
const ICONS = {
  pin: "M9 3h6l-1 6 4 5H6l4-5zM12 14v7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
};

function iconButton(name, label, act) {
  const made = namedIcon(ICONS[name], label, act);
  made.dataset.icon = name;
  return made;
}

/** The length in a queue, else the similarity, if there is one; a bar shows the similarity. */
function measure(row, isQueue) {
  const box = element("div", "measure");
  if (row.similarity === null) {
    box.textContent = row.length;
    return box;
  }
  box.append(element("span", "", isQueue ? row.length : row.similarity.toFixed(2)));
  box.title = `similarity ${row.similarity.toFixed(3)} out of 1`;
  const bar = element("div", "bar");
  const filled = element("i");
  filled.style.width = `${Math.round(100 * row.similarity)}%`;
  bar.append(filled);
  box.append(bar);
  return box;
}

function pin(row, index, send) {
  const name = `“${row.title}”`;
  const made = iconButton("pin", row.is_kept ? `Unpin ${name}` : `Keep ${name} here`, () => send("keep", index));
  made.setAttribute("aria-pressed", String(row.is_kept));
  return made;
}

/** The actions of a row of a queue or an editable list, as words. */
function menu(row, index, data, send) {
  const name = `“${row.title}”`;
  const worded = (word, label, kind, { to = -1, id = kind, disabled = false } = {}) => {
    const made = button(word, label, () => send(kind, index, to), disabled);
    made.dataset.icon = id;
    return made;
  };
  const keep = worded(row.is_kept ? "Unpin" : "Keep here", pin(row, index, send).title, "keep");
  const remove = worded("Remove", `Remove ${name}`, "drop");
  if (data.editable) {
    const last = data.rows.length - 1;
    return [
      keep,
      worded("Replace", `Replace ${name}`, "another"),
      worded("Replace the rest", `Replace the songs after ${name}`, "redraw", { disabled: index === last }),
      worded("Add after", `Add songs after ${name}`, "insert"),
      worded("Up", `Move ${name} up`, "move", { to: index - 1, id: "up", disabled: index === 0 }),
      worded("Down", `Move ${name} down`, "move", { to: index + 1, id: "down", disabled: index === last }),
      remove,
    ];
  }
  const like = worded("Fits", `${name} fits`, "like");
  const unlike = worded("Does not fit", `${name} does not fit`, "unlike");
  like.setAttribute("aria-pressed", String(row.judged === 1));
  unlike.setAttribute("aria-pressed", String(row.judged === -1));
  return [
    keep,
    ...(row.judged === null ? [] : [like, unlike]),
    ...(row.can_explain ? [worded("Why?", `Why ${name}?`, "why")] : []),
    worded("Similar songs", `Similar songs to ${name}`, "similar"),
    remove,
  ];
}

function actions(row, index, data, send) {
  const box = element("div", "actions");
  const name = `“${row.title}”`;
  if (data.editable || data.queue) {
    box.append(...menu(row, index, data, send));
  } else {
    box.append(
      button("≈", data.notSimilar || `Similar songs to ${name}`, () => send("similar", index), data.notSimilar !== ""),
      button("+", `Add ${name} to the queue`, () => send("enqueue", index)),
    );
  }
  return box;
}

/** The button that opens the menu of a row, which lies above the other rows. */
function opener(item, row, menu) {
  const open = iconButton("more", `Actions for “${row.title}”`, () => {});
  open.classList.add("opener");
  menu.popover = "auto";
  open.popoverTargetElement = menu;
  menu.addEventListener("toggle", ({ newState }) => {
    const isOpen = newState === "open";
    item.classList.toggle("open", isOpen);
    open.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) return;
    const box = open.getBoundingClientRect();
    const isBelow = box.bottom + menu.offsetHeight < window.innerHeight;
    menu.style.top = `${isBelow ? box.bottom : Math.max(0, box.top - menu.offsetHeight)}px`;
    menu.style.left = `${Math.max(4, box.right - menu.offsetWidth)}px`;
  });
  menu.addEventListener("click", ({ target }) => { if (target.closest("button")) menu.hidePopover(); });
  return open;
}

const ROW = "application/x-musicsim-row";

function droppable(item, target, send) {
  item.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes(ROW)) return;
    event.preventDefault();
    item.classList.add("over");
  });
  item.addEventListener("dragleave", () => item.classList.remove("over"));
  item.addEventListener("drop", (event) => {
    event.preventDefault();
    item.classList.remove("over");
    const sent = event.dataTransfer.getData(ROW);
    const from = Number(sent);
    const to = target(from);
    if (sent !== "" && to !== from) send("move", from, to);
  });
}

function draggable(item, index, send) {
  item.draggable = true;
  item.addEventListener("dragstart", (event) => {
    event.dataTransfer.setData(ROW, String(index));
    event.dataTransfer.effectAllowed = "move";
    item.classList.add("dragged");
  });
  item.addEventListener("dragend", () => item.classList.remove("dragged"));
  droppable(item, () => index, send);
}

/** Return the cover behind the play symbol; it is removed if it cannot be loaded. */
function cover(songId, address) {
  const picture = element("img", "cover");
  Object.assign(picture, { loading: "lazy", alt: "", draggable: false });
  picture.addEventListener("load", () => picture.parentNode?.classList.add("covered"));
  picture.addEventListener("error", () => picture.remove());
  picture.src = resolve(address.replace("{}", songId));
  return picture;
}

function songRow(row, index, data, list, send) {
  const item = element("li", row.is_kept ? "row kept" : "row");
  item.dataset.songId = row.song_id;
  item.dataset.testid = "song-row";
  const play = button("▶", `Play “${row.title}”`, () => send("play", index));
  play.classList.add("play");
  play.append(cover(row.song_id, data.covers));
  const words = element("div", "words");
  words.append(element("div", "title", row.title), element("div", "sub", row.is_missing ? "file not found" : row.sub));
  item.classList.toggle("missing", Boolean(row.is_missing));
  if (row.reason) words.append(element("div", "reason", row.reason));
  words.title = [row.title, row.sub, row.reason].filter(Boolean).join("\n");
  if (row.is_current) item.setAttribute("aria-current", "true");
  item.append(element("span", "rank", String(data.first + index + 1)), play, words, measure(row, data.queue));
  const menu = actions(row, index, data, send);
  if (list.classList.contains("crowded")) item.append(pin(row, index, send), opener(item, row, menu));
  if (data.editable) draggable(item, index, send);
  item.addEventListener("click", ({ target }) => {
    if (!target.closest("button, [popover]") && document.getSelection()?.isCollapsed !== false) send("play", index);
  });
  item.append(menu);
  return item;
}

function chip(row, index, send) {
  const made = element("button", "chip", `↓ ${row.link}`.trim());
  made.type = "button";
  made.dataset.testid = "transition";
  made.title = row.link ? `Why: ${row.link}. Click for other reasons.` : "Why this step?";
  if (!row.link) made.setAttribute("aria-label", made.title);
  made.addEventListener("click", () => send("why", index));
  const holder = element("li", "between");
  // drop before the lower song, which moves up if the dragged song comes from above
  droppable(holder, (from) => (from < index ? index - 1 : index), send);
  holder.append(made);
  return holder;
}

// Every change rebuilds the list; the focus returns to the same button of the same song.
function focused(list) {
  const button = list?.getRootNode().activeElement;
  const row = button?.closest?.(".row");
  return row && list.contains(row) ? { song: row.dataset.songId, icon: button.dataset.icon } : null;
}

const LOOK_MS = 100; // interval for polling the focus, because a removed element loses it without an event
/** @type {AbortController | null} */
let returning = null;

/**
 * If the pressed button opens a dialog, return the focus to it afterwards, until the user presses a key or clicks: the
 * list was rebuilt in the meantime, and the page may rebuild it, or show the dialog again, more than once.
 */
function returnFocus(parent, { title }) {
  let wasOpen = false;
  const isOpen = () => document.querySelector("[role=dialog]") !== null;
  const look = () => {
    wasOpen ||= isOpen();
    if (!wasOpen || isOpen() || document.activeElement !== document.body) return;
    const again = [...parent.querySelectorAll("button")].find((button) => button.title === title);
    again?.focus();
    if (document.activeElement === document.body) again?.closest(".row")?.querySelector(".opener, .play")?.focus();
  };
  returning?.abort();
  const ending = new AbortController();
  returning = ending;
  const { signal } = ending;
  const timer = setInterval(look, LOOK_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  const stop = () => isOpen() || ending.abort();
  for (const type of ["pointerdown", "keydown"]) document.addEventListener(type, stop, { capture: true, signal });
}

// Arrow keys move between rows, to the same button if both rows have it; Home and End go to the first and last row.
function walkRows(event) {
  const step = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity }[event.key];
  const button = event.composedPath()[0];
  const row = button.closest?.(".row");
  if (!step || !row || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...event.currentTarget.querySelectorAll(".row")];
  const next = all[Math.max(0, Math.min(all.length - 1, all.indexOf(row) + step))];
  const at = [...row.querySelectorAll("button")].indexOf(button);
  (next.querySelectorAll("button")[at] ?? next.querySelector("button")).focus();
  event.preventDefault();
}

/**
 * Draw the rows below an element; `act(kind, index, to)` carries out an action on a row.
 * @param {HTMLElement | ShadowRoot} parent
 * @param {{rows: any[], editable: boolean, queue: boolean, first: number, notSimilar: string, covers: string}} data
 * @param {(kind: string, index: number, to?: number) => void} act
 */
export function drawList(parent, data, act) {
  applyStyle(parent, STYLE);
  const send = (kind, index, to = -1) => act(kind, index, to);
  /** @type {HTMLElement | null} */
  const old = parent.querySelector(".list");
  const list = element("ol", data.editable ? "list editable" : "list");
  list.classList.toggle("crowded", data.editable || data.queue);
  list.classList.toggle("of-queue", data.queue);
  list.dataset.testid = "song-list";
  list.addEventListener("keydown", walkRows);
  list.addEventListener("click", ({ target }) => {
    const pressed = target.closest("button");
    if (pressed) returnFocus(parent, pressed);
  });
  data.rows.forEach((row, index) => {
    if (row.link !== null) list.append(chip(row, index, send));
    list.append(songRow(row, index, data, list, send));
  });
  const focus = focused(old);
  if (old) old.replaceWith(list);
  else parent.append(list);
  if (focus?.icon) list.querySelector(`[data-song-id="${focus.song}"] [data-icon="${focus.icon}"]`)?.focus();
}
