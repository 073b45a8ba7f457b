// The client of a tab: the player, and what Listen shows. It outlives all pages and runs of the server's scripts.

import { Listening } from "./listen/listening.js";
import { Engine } from "./player/engine.js";

const CLIENT = Symbol.for("musicsim.client");

/**
 * What the frame tells about the tab.
 * @typedef {object} Context
 * @property {string} library name of the open library
 * @property {string} model name of the model in use; empty without a model
 * @property {string} modelId
 * @property {number} revision grows with each change of the library
 * @property {boolean} isOwner
 * @property {boolean} keepsPlays
 */

class Client {
  constructor() {
    window[CLIENT] = this; // the player's first events already ask for the client
    this.player = new Engine();
    window[Symbol.for("musicsim.player")] = this.player; // for other scripts of the page
    /** @type {Context} */
    this.context = { library: "", model: "", modelId: "", revision: 0, isOwner: false, keepsPlays: false };
    this.nSent = 0;
    this.sendToFrame = (/** @type {object} */ _request) => {};
    this.listen = new Listening(this);
    this.player.onOpen = ({ song_id: id }, isSeed) => this.openSong(id, isSeed);
  }

  /** @param {Context} context @param {(request: object) => void} sendToFrame */
  receive(context, sendToFrame) {
    this.sendToFrame = sendToFrame;
    this.context = context;
    this.player.receive(context);
    this.listen.receive(context);
  }

  /** Show another page; the frame's script acts on the request (see musicsim/ui/frame.py). @param {string} page */
  go(page, request = {}) {
    this.nSent += 1;
    this.sendToFrame({ number: this.nSent, page, library: this.player.library || this.context.library, ...request });
  }

  /** Show a song of the player on Listen; with `isSeed`, the queue starts from it. @param {number} id */
  openSong(id, isSeed = false) {
    const { library } = this.player;
    if (library === this.context.library && !isSeed && this.listen.has(id)) this.listen.find(id);
    else this.listen.start({ song: id }, { library, plays: false });
    if (!this.listen.isShown || library !== this.context.library) this.go("listen");
  }

  /** Play a song, start the queue from it, and show both on Listen. @param {number} id */
  startSong(id, library = this.context.library) {
    this.listen.start({ song: id }, { library, plays: true });
    if (!this.listen.isShown) this.go("listen");
  }
}

/** Return the client of this tab. @returns {Client} */
export function theClient() {
  return window[CLIENT] ?? new Client();
}
