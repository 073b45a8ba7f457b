// Component that shows work of the server while it goes on, and runs the page when the work's state has changed (see
// musicsim/ui/base/watching.py).

import { ask } from "../addresses.js";
import { fetchStyle, mount } from "../component.js";
import { Calm, follow } from "./calm.js";
import { draw } from "./view.js";
import { Watching } from "./watching.js";

const STYLE = await fetchStyle("watch.css", import.meta.url);
const calm = follow(document, new Calm());
const now = () => performance.now();

class Watch {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.rerun = (/** @type {string} */ _state) => {};
    const isShown = () => root.isConnected && document.visibilityState === "visible";
    const world = { ask, now, isShown, isCalm: () => calm.isAt(now()) };
    this.watching = new Watching(world, (view) => draw(root, view), (state) => this.rerun(state));
    this.isOpen = true;
    this.timer = 0;
  }

  /** @param {import("../component.js").Component} component */
  receive({ data, setTriggerValue }) {
    const isFirst = this.watching.data === null;
    calm.draw(now());
    this.rerun = (state) => setTriggerValue("changed", state);
    this.root.classList.toggle("framed", data.isFramed);
    if (data.isFramed) this.root.setAttribute("role", "status");
    this.watching.receive(data);
    if (isFirst) this.wait(1000 * data.every);
  }

  wait(/** @type {number} */ pause) {
    this.timer = setTimeout(async () => {
      const next = await this.watching.step();
      if (this.isOpen) this.wait(next);
    }, pause);
  }

  close() {
    this.isOpen = false;
    clearTimeout(this.timer);
  }
}

/** @param {import("../component.js").Component} component */
export default function (component) {
  return mount(component, "musicsim-watch", "watch", Watch, STYLE);
}
