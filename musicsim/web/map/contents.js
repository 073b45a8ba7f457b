// The contents of the map next to it: a tree of its regions, and of the genres, folders or artists in each region. A
// click on an item plays a typical song of it, and the map shows its songs alone.

import { element, iconButton } from "../elements.js";
import { findByLetters, moveInTree, typicalSong } from "./tree.js";

const TYPED_MS = 800; // letters that are typed in this time belong together
const CLOSE = "M6 6l12 12M18 6L6 18";
const number = (/** @type {number} */ n) => n.toLocaleString("en");

/**
 * @typedef {{name: string, n_songs: number, typical: number[]}} Group
 * @typedef {{by: string, order: string, regions: {region: Group, groups: Group[]}[], codes: Uint16Array}} ContentsData
 * @typedef {object} Owner
 * @property {(codes: Set<number> | null) => void} onShow show the songs of these groups alone; all if null
 * @property {(id: number) => void} onPlay
 * @property {(id: number) => boolean} isDisliked
 * @property {() => void} onClose
 */

export class Contents {
  /** @param {Owner} owner */
  constructor(owner) {
    this.owner = owner;
    /** @type {any[]} the items in the order of the page: name, level, isOpen, codes, typical, row */
    this.items = [];
    this.at = 0;
    this.typed = "";
    this.typedAt = 0;
    this.tree = element("ul", "tree");
    Object.assign(this.tree, { role: "tree", ariaLabel: "Contents of the map" });
    this.waits = element("p", "waits", "Reading the contents…");
    const close = iconButton(CLOSE, "Close the contents", owner.onClose, { className: "tool" });
    this.root = element("section", "contents", element("header", "", element("b", "", "Contents"), close), this.waits, this.tree);
    this.root.ariaLabel = "Contents";
    this.root.hidden = true;
    this.tree.addEventListener("click", (event) => this.click(event));
    this.tree.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {ContentsData} data */
  receive({ regions, by }) {
    this.by = by;
    this.items = [this.itemOf({ name: "All songs", n_songs: regions.reduce((sum, { region }) => sum + region.n_songs, 0), typical: [] }, 1, null, null)];
    let code = 0;
    const all = regions.map(({ region, groups }) => {
      const codes = groups.map((_, i) => code + i);
      code += groups.length;
      const item = this.itemOf(region, 1, new Set(codes), groups.length > 1 ? false : null);
      this.items.push(item);
      if (groups.length < 2) return item.row;
      const children = groups.map((group, i) => this.itemOf(group, 2, new Set([codes[i]]), null));
      this.items.push(...children);
      const list = element("ul", "", ...children.map(({ row }) => row));
      list.role = "group";
      item.row.append(list);
      return item.row;
    });
    this.tree.replaceChildren(this.items[0].row, ...all);
    this.waits.hidden = true;
    this.stand(0);
    this.select(0);
  }

  fail() {
    this.waits.textContent = "The contents cannot be read. Close them, and try again.";
  }

  itemOf({ name, n_songs: n, typical }, level, codes, isOpen) {
    const dot = element("i", "dot");
    const line = element("span", "line", element("span", "twist"), dot, element("span", "name", name), element("span", "n", number(n)));
    const row = element("li", "", line);
    Object.assign(row, { role: "treeitem", tabIndex: -1, ariaLevel: String(level), ariaLabel: `${name}, ${number(n)} ${n === 1 ? "song" : "songs"}` });
    line.title = name;
    if (isOpen !== null) row.ariaExpanded = String(isOpen);
    return { name, level, isOpen, codes, typical, row, dot, nPlayed: 0 };
  }

  /** Give items the colors of their names in the legend. @param {{by: string, entries: {name: string, color: string}[]}} colors */
  paint({ by, entries }) {
    const colorOf = new Map(entries.map(({ name, color }) => [name, color]));
    for (const { level, name, dot } of this.items) {
      dot.hidden = by !== this.by || level === 1;
      dot.style.background = colorOf.get(name) ?? "none";
    }
  }

  /** Move the focus to an item, or only where it will be. */
  stand(at, { hasFocus = false } = {}) {
    for (const [i, { row }] of this.items.entries()) row.tabIndex = i === at ? 0 : -1;
    this.at = at;
    if (hasFocus) this.items[at].row.focus();
  }

  select(at) {
    for (const [i, { row }] of this.items.entries()) row.ariaSelected = String(i === at);
  }

  open(at, isOpen) {
    const item = this.items[at];
    if (item.isOpen === null) return;
    item.isOpen = isOpen;
    item.row.ariaExpanded = String(isOpen);
    if (!isOpen && this.items[this.at].level > 1 && item.row.contains(this.items[this.at].row)) this.stand(at);
  }

  /** Play a typical song of an item, another one each time, and show its songs alone. */
  pick(at) {
    const item = this.items[at];
    this.stand(at, { hasFocus: true });
    this.select(at);
    this.open(at, true);
    this.owner.onShow(item.codes);
    const id = typicalSong(item.typical, item.nPlayed, this.owner.isDisliked);
    item.nPlayed += 1;
    if (id !== null) this.owner.onPlay(id);
  }

  click({ target }) {
    const at = this.items.findIndex(({ row }) => row === target.closest("li"));
    if (at < 0) return;
    if (target.closest(".twist") && this.items[at].isOpen !== null) {
      this.stand(at, { hasFocus: true });
      this.open(at, !this.items[at].isOpen);
    } else {
      this.pick(at);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = event;
    const move = moveInTree(this.items, this.at, key);
    if (move?.isOpen !== undefined) this.open(move.at, move.isOpen);
    else if (move) this.stand(move.at, { hasFocus: true });
    else if (key === "Enter" || key === " ") this.pick(this.at);
    else if (key === "Escape") this.owner.onClose();
    else if (key.length === 1) this.find(key, event.timeStamp);
    else return;
    event.preventDefault();
    event.stopPropagation(); // letters and the space bar also control the player
  }

  find(letter, now) {
    this.typed = now - this.typedAt < TYPED_MS ? this.typed + letter : letter;
    this.typedAt = now;
    const at = findByLetters(this.items, this.at, this.typed);
    if (at !== null) this.stand(at, { hasFocus: true });
  }
}
