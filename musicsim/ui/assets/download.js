// A button that downloads a file, which the server makes at the click (see musicsim/ui/components/downloads.py).

import { resolve } from "../../web/addresses.js";
import { applyStyle, fetchStyle } from "../../web/component.js";
import { button, element, icon } from "../../web/elements.js";

const STYLE = await fetchStyle("download.css", import.meta.url);
const ARROW = "M12 4v11m-5-5 5 5 5-5M5 20h14";
const FORGET_MS = 60_000;

/** Fetch a file; an error is a sentence for the user. */
async function fetchFile(address) {
  const answer = await fetch(resolve(address)).catch(() => null);
  if (!answer) throw new Error("The app cannot be reached. Is it running?");
  if (answer.ok) return answer.blob();
  const { error } = await answer.json().catch(() => ({ error: `the server answered with the status ${answer.status}.` }));
  throw new Error(error[0].toUpperCase() + error.slice(1));
}

/** Save a file in the browser's folder for downloads. @param {Blob} file @param {string} name */
function save(file, name) {
  const href = URL.createObjectURL(file);
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), FORGET_MS);
}

class Download {
  constructor(parent) {
    this.data = { label: "", address: "", name: "", type: "secondary", isOff: false, help: "" };
    this.isBusy = false;
    this.label = element("span");
    this.button = button("", () => this.start(), {}, icon(ARROW), this.label);
    this.problem = element("div", { className: "problem", role: "alert" });
    this.root = element("div", "musicsim-download", this.button, this.problem);
    parent.append(this.root);
  }

  receive(data) {
    if (data.address !== this.data.address) this.problem.textContent = "";
    this.data = data;
    this.label.textContent = this.button.ariaLabel = data.label;
    this.button.title = data.help;
    this.button.className = data.type;
    this.show();
  }

  show() {
    this.button.disabled = this.data.isOff;
    this.button.ariaBusy = String(this.isBusy);
  }

  async start() {
    if (this.isBusy) return;
    this.isBusy = true;
    this.problem.textContent = "";
    this.show();
    const { address, name } = this.data;
    try {
      save(await fetchFile(address), name);
    } catch (error) {
      this.problem.textContent = /** @type {Error} */ (error).message;
    }
    this.isBusy = false;
    this.show();
  }
}

const views = new WeakMap();

/** @param {import("../../web/component.js").Component} component */
export default function ({ data, parentElement }) {
  applyStyle(parentElement, STYLE);
  if (!views.has(parentElement)) views.set(parentElement, new Download(parentElement));
  views.get(parentElement).receive(data);
}
