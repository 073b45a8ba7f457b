// When a page may run by itself: not while the user does something. A run ends the callback of a click at its next access
// to the session, and the click would have no effect. Callbacks come before the rest of a run, which draws components.

export const STILL_MS = 150; // between two clicks or letters
export const CALLBACKS_MS = 3000; // callbacks of a click have ended by then
export const NOT_EARLIER_MS = 300; // data that arrives sooner can be from a run before the click

/** The times (in ms) of what the user does, and of the data that runs draw. */
export class Calm {
  constructor() {
    this.touched = -Infinity;
    this.drawn = -Infinity;
    this.isPressed = false;
  }

  /** Note a click, a letter or a move to another page. */
  touch(now) {
    this.touched = now;
  }

  /** Note that a run has drawn a component. */
  draw(now) {
    this.drawn = now;
  }

  /** Return true if the user does nothing, and the callbacks of the last click have ended. */
  isAt(now) {
    if (this.isPressed || now - this.touched < STILL_MS) return false;
    return now - this.touched >= CALLBACKS_MS || this.drawn - this.touched >= NOT_EARLIER_MS;
  }
}

const TOUCHES = ["click", "keydown", "input", "change", "drop", "pointerup", "pointercancel"];

/** Follow what the user does in this tab. @param {Document} page @param {Calm} calm */
export function follow(page, calm, clock = () => performance.now()) {
  const options = { capture: true, passive: true };
  const touch = () => calm.touch(clock());
  page.addEventListener("pointerdown", () => { calm.isPressed = true; touch(); }, options);
  for (const end of ["pointerup", "pointercancel"]) page.addEventListener(end, () => { calm.isPressed = false; }, options);
  for (const name of TOUCHES) page.addEventListener(name, touch, options);
  page.defaultView?.addEventListener("popstate", touch);
  page.defaultView?.addEventListener("blur", () => { calm.isPressed = false; });
  return calm;
}
