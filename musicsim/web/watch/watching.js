// Asking for a view of work, again and again, and asking for a run of the page when its state has changed.

const RETRY_MS = 200; // until the user or a run is ready
const LONGEST_MS = 30_000; // between two questions, after errors
const AGAIN_MS = 10_000; // until a second run may be asked for the same state

/**
 * A view of work, as musicsim/progress.py renders it.
 * @typedef {{text: string, share: number | null, title: string}} Part
 * @typedef {{state: string, parts: Part[]}} View
 * @typedef {View & {address: string, every: number, isFramed: boolean, runs: string, run: number}} Data
 * @typedef {object} World
 * @property {(address: string) => Promise<any>} ask
 * @property {() => number} now
 * @property {() => boolean} isShown the page can be seen, and the view is in it
 * @property {() => boolean} isCalm
 */

/** Watches one piece of work. */
export class Watching {
  /** @param {World} world @param {(view: View) => void} show @param {(state: string) => void} rerun */
  constructor(world, show, rerun) {
    this.world = world;
    this.show = show;
    this.rerun = rerun;
    /** @type {Data | null} */
    this.data = null;
    this.state = ""; // the newest that the server told
    this.asked = { state: "", time: -Infinity }; // the last run that was asked for
    this.errors = 0;
  }

  /** Receive what a run has drawn. @param {Data} data */
  receive(data) {
    this.data = data;
    this.state = data.state;
    this.show(data);
  }

  get isChanged() {
    return this.data !== null && this.state !== this.data.state;
  }

  /** Do what is due, and return the milliseconds until the next time. @returns {Promise<number>} */
  async step() {
    const { data, world } = this;
    if (!data || !world.isShown()) return RETRY_MS;
    try {
      const view = await world.ask(data.address);
      this.errors = 0;
      if (this.data !== data) return RETRY_MS; // a run was faster
      this.state = view.state;
      this.show(view);
      if (this.isChanged) return (await this.askForRun()) ? this.pause : RETRY_MS;
    } catch {
      this.errors += 1;
    }
    return this.pause;
  }

  get pause() {
    return Math.min(LONGEST_MS, 1000 * (this.data?.every ?? 1) * 2 ** this.errors);
  }

  /** Ask for a run of the page if nothing is in its way, and return true if it was asked for. */
  async askForRun() {
    const { data, world, asked, state } = this;
    if (!data || (asked.state === state && world.now() - asked.time < AGAIN_MS)) return true;
    if (!world.isCalm()) return false;
    const { is_running: isRunning } = await world.ask(data.runs);
    if (isRunning || this.data !== data || !world.isShown() || !world.isCalm()) return false;
    this.asked = { state, time: world.now() };
    this.rerun(state);
    return true;
  }
}
