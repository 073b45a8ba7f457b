// What Listen does: it asks for the queue of the listener's request, gives it to the player, and follows the player. The
// view shows it; everything stays while the user is on another page.

import { Refusal, ask, post } from "../addresses.js";
import { fetchTracks, trackOf } from "../player/engine.js";
import { stored } from "../storage.js";
import { Sounds, factsOf } from "./sounds.js";
import * as states from "./state.js";

const SAVE_AFTER_MS = 400;
const NOT_FOUND = 404;
const MAX_TITLES = 500; // that survive a reload

/** @typedef {import("../client.js").Context} Context */

export class Listening {
  /** @param {any} client */
  constructor(client) {
    this.client = client;
    /** @type {states.Model | null} */
    this.model = null;
    /** @type {any} the server's last answer for this seed */
    this.answer = null;
    /** @type {Map<number, string>} titles of songs, keyed by id */
    this.titles = new Map();
    /** @type {any[]} options of a search, as the library offers them */
    this.options = [];
    /** @type {any} colors, models and numbers of songs of the map */
    this.map = null;
    /** @type {number[]} songs that a search or an outline marked */
    this.marked = [];
    this.doing = ""; // what the page waits for
    this.error = "";
    this.said = ""; // the effect of the last thumb
    this.isSending = false; // a sound is on its way to the server, or analyzed there
    /** @type {any} */
    this.view = null;
    this.sounds = new Sounds();
    /** @type {AbortController | null} */
    this.asking = null;
    /** @type {number | null} place in the queue to play once it is known; -1 is the seed */
    this.playAt = null;
    /** @type {any} a start in a library that the frame has to open first */
    this.waiting = null;
    this.known = "";
    document.addEventListener("musicsim-song", () => this.follow());
    window.addEventListener("popstate", () => { if (this.isShown) this.openAddress(); });
  }

  /** @returns {Context} */
  get context() {
    return this.client.context;
  }

  /** @returns {import("../player/engine.js").Engine} */
  get player() {
    return this.client.player;
  }

  get isShown() {
    return Boolean(this.view?.host.isConnected);
  }

  /** @returns {any[]} */
  get items() {
    return this.answer?.items ?? [];
  }

  /** @returns {states.Request | undefined} */
  get now() {
    return this.model?.now;
  }

  get hasSeed() {
    return states.hasSeed(this.now);
  }

  get name() {
    return this.now ? states.nameOf(this.context.library, this.now) : "";
  }

  /** True if the player plays the queue of this page. */
  get isFollowed() {
    return this.hasSeed && this.player.name === this.name;
  }

  /** The sound that the queue starts from, if it does not start from a song. */
  get sound() {
    return this.now?.seed.sound ? this.sounds.get(this.now.seed.sound) : null;
  }

  /** Id of the song that is playing if it is in this queue, else of the seed. */
  get current() {
    const playing = this.isFollowed ? this.player.track?.song_id : null;
    return playing && this.has(playing) ? playing : (this.now?.seed.song ?? null);
  }

  get query() {
    return { library: this.context.library, model: this.context.model };
  }

  /** @param {number} id */
  has(id) {
    return this.now?.seed.song === id || this.items.some(({ song }) => song.id === id);
  }

  // ------------------------------------------------------------------------- library and address

  /** @param {Context} context */
  receive(context) {
    const [known, { library, modelId, revision }] = [this.known, context];
    const isOther = !known.startsWith(`${library}\n`);
    this.known = `${library}\n${modelId}\n${revision}`;
    if (known) this.writeAddress(); // the frame's script may have written the address
    if (known === this.known) return;
    this.fetchFacts();
    const isOfModel = known.startsWith(`${library}\n${modelId}\n`);
    if (isOther) this.open(library);
    else if (this.hasSeed && (!isOfModel || this.items.length < (this.now?.length ?? 0))) this.ask();
    this.render();
  }

  /** Show a library: what was to start there, what the address names, or what the tab showed before. @param {string} library */
  open(library) {
    this.restore();
    const { waiting } = this;
    this.waiting = null;
    if (waiting?.library === library) this.begin(waiting.seed, waiting.how);
    else if (this.openAddress()) return;
    else if (this.hasSeed) this.ask();
  }

  async fetchFacts() {
    const { known, query } = this;
    try {
      const [options, map] = await Promise.all([ask("api/options", query), ask("api/map", query)]);
      if (known === this.known) Object.assign(this, { options, map });
    } catch (error) {
      console.debug("listen:", error);
    }
    this.render();
  }

  get storageKey() {
    return `musicsim.listen ${this.context.library}`;
  }

  keep() {
    const titles = [...this.titles].slice(-MAX_TITLES);
    stored("sessionStorage", this.storageKey, { model: this.model, answer: this.answer, titles, sound: factsOf(this.sound) });
  }

  restore() {
    const saved = stored("sessionStorage", this.storageKey);
    this.asking?.abort();
    Object.assign(this, { model: saved?.model ?? null, answer: saved?.answer ?? null, marked: [], error: "", doing: "", said: "" });
    this.titles = new Map(saved?.titles ?? []);
    if (saved?.sound) this.sounds.remember(saved.sound);
  }

  /** Start from the song that the address names, unless it is the seed already; return true if it starts. */
  openAddress() {
    const id = Number(new URLSearchParams(location.search).get("song"));
    const isNamed = Number.isSafeInteger(id) && id > 0;
    if (!isNamed) this.writeAddress();
    if (!isNamed || id === this.now?.seed.song) return false;
    this.begin({ song: id }, { plays: false, isNew: false });
    return true;
  }

  /** Write the seed to the address; a new seed is a step of the browser's history. */
  writeAddress(isNew = false) {
    if (!this.isShown) return;
    const address = new URL(location.href);
    if (this.now?.seed.song) address.searchParams.set("song", String(this.now.seed.song));
    else address.searchParams.delete("song");
    if (address.href === location.href) return;
    if (isNew) history.pushState(history.state, "", address);
    else history.replaceState(history.state, "", address);
  }

  // ------------------------------------------------------------------------------------- the seed

  /** Start the queue from a seed of a library, which the frame opens if it is another one. @param {states.Seed} seed @param {any} how */
  start(seed, { library, ...how }) {
    if (library === this.context.library) { this.begin(seed, how); return; }
    this.waiting = { library, seed, how };
    if (how.plays && seed.song) this.player.playSongs([seed.song], 0, { library });
  }

  /**
   * @param {states.Seed} seed
   * @param {{plays?: boolean, playAt?: number | null, more?: object, words?: string | null, marked?: number[], isNew?: boolean}} how
   */
  begin(seed, { plays = false, playAt = null, more = {}, words = null, marked = [], isNew = true } = {}) {
    const wereWords = this.now && !this.now.seed.song && !this.now.seed.sound;
    let search = this.now?.search ?? {};
    if (words !== null || wereWords) search = { ...search, words: words ?? "" };
    if (!search.words) delete search.words;
    this.model = states.begin(seed, more, search);
    Object.assign(this, { answer: null, marked, error: "", said: "", playAt, isSending: false });
    const { library } = this.context;
    if (plays && seed.song) {
      const title = this.titles.get(seed.song);
      this.player.playSongs([seed.song], 0, { library, name: this.name, titles: title ? [{ title }] : [] });
    }
    this.writeAddress(isNew);
    this.ask().then(() => this.takeThumbs());
  }

  /** Start the queue from the song that is playing, without interrupting it. @param {number} id */
  startSimilar(id) {
    const isPlaying = this.player.track?.song_id === id && this.player.library === this.context.library;
    this.begin({ song: id });
    if (isPlaying) this.player.name = this.name;
    this.bring();
  }

  /** Continue with the songs nearest to the seed that have not played, after the song that is playing. */
  goBack() {
    if (!this.model) return;
    const { seed, heard, removed, search } = this.model.now;
    const { isFollowed } = this;
    this.model = states.begin(seed, { removed: [...removed, ...heard.map(({ song_id: id }) => id)] }, search);
    if (isFollowed) this.player.name = this.name;
    this.answer = { ...this.answer, items: [] };
    this.ask("going back");
  }

  /** Start from a match of the search box. @param {{kind: string, value: string, title: string}} match */
  async pick({ kind, value, title }) {
    if (kind === "song") {
      this.titles.set(Number(value), title);
      this.begin({ song: Number(value) }, { plays: true });
      return;
    }
    this.setDoing(`looking for ${title}`);
    try {
      const { ids } = await ask("api/find/songs", { ...this.query, kind, value });
      if (kind === "words") this.begin({}, { words: value, playAt: 0, marked: ids.length > 1 ? ids : [] });
      else if (ids.length) this.startSeveral(ids, { marked: ids.length > 1 ? ids : [] });
      else this.fail(new Error(`No song of “${title}” can be compared yet.`));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Play the first of some songs; the others come next, and are examples, too. @param {number[]} ids */
  startSeveral(ids, { marked = [] } = {}) {
    const [first, ...others] = ids.slice(0, states.MAX_EXAMPLES);
    const examples = Object.fromEntries(others.map((id) => [id, 1]));
    this.begin({ song: first }, { plays: true, more: { opening: others, examples }, marked });
  }

  /** Start from songs like these. @param {number[]} ids */
  startLike(ids) {
    const [first, ...others] = states.sampleEvenly(ids, states.MAX_EXAMPLES);
    this.begin({ song: first }, { plays: true, more: { examples: Object.fromEntries(others.map((id) => [id, 1])) } });
  }

  /** Start from a sound file or a recording. @param {Blob} file @param {string} name */
  async send(file, name, { isWhole = false } = {}) {
    this.asking?.abort();
    const asking = new AbortController();
    this.asking = asking;
    this.isSending = true;
    this.error = "";
    this.setDoing(`analyzing ${name}`);
    try {
      const sound = await this.sounds.send(file, name, { ...this.query, whole: isWhole || null }, asking.signal, (nAhead) => {
        const files = nAhead === 1 ? "1 file" : `${nAhead} files`;
        if (!asking.signal.aborted) this.setDoing(nAhead ? `in line: ${files} ahead of yours` : `analyzing ${name}`);
      });
      if (asking.signal.aborted) return;
      this.isSending = false;
      this.begin({ sound: sound.sound });
    } catch (error) {
      if (asking.signal.aborted) return;
      this.isSending = false;
      this.fail(error instanceof Refusal ? new Error(`${name}: ${error.message}`) : error);
    }
  }

  /** Stop sending or analyzing a sound. */
  cancel() {
    this.asking?.abort();
    this.isSending = false;
    this.setDoing("");
  }

  // ----------------------------------------------------------------------------------- the queue

  /** Change the request, and ask for its queue; `doing` says what the listener asked for. @param {states.Model} model */
  change(model, doing = "choosing songs") {
    this.model = model;
    this.said = "";
    this.ask(doing);
  }

  undo() {
    if (!this.model) return;
    const before = states.judged(this.model.now);
    this.change(states.undo(this.model), "going back");
    if (JSON.stringify(before) !== JSON.stringify(states.judged(this.model.now))) this.saveThumbs();
  }

  async ask(doing = "choosing songs") {
    this.asking?.abort();
    this.error = "";
    const { now } = this;
    if (!now || !this.hasSeed) { this.answer = null; this.setDoing(""); return; }
    const asking = new AbortController();
    this.asking = asking;
    this.setDoing(doing);
    try {
      for (const wait of [false, true]) {
        const answer = await post("api/queue", { ...states.requestOf(now), wait }, this.query, { signal: asking.signal });
        if (asking.signal.aborted) return;
        this.take(answer);
        if (answer.is_complete) break;
      }
    } catch (error) {
      if (asking.signal.aborted) return;
      if (error instanceof Refusal && error.status === NOT_FOUND && !this.answer) this.forgetSeed();
      this.fail(error);
      return;
    }
    this.setDoing("");
  }

  /** Drop a seed that does not exist. */
  forgetSeed() {
    this.model = null;
    this.writeAddress();
    this.keep();
  }

  take(answer) {
    const before = this.items;
    this.answer = answer;
    for (const { song } of [answer.start, ...answer.items].filter(Boolean)) this.titles.set(song.id, song.title);
    if (this.thumbed) this.said = states.whatChanged(before, answer.items);
    this.thumbed = false;
    if (this.playAt !== null && answer.items.length) this.play(this.playAt);
    this.playAt = null;
    this.bring();
    this.follow();
    this.keep();
  }

  fail(error) {
    this.error = error instanceof Error ? error.message : String(error);
    this.setDoing("");
  }

  setDoing(doing) {
    this.doing = doing;
    this.render();
  }

  /** The first track of the queue: the seed, unless it is words. @returns {any} */
  get firstTrack() {
    const { sound } = this;
    if (sound) return sound.track ?? null;
    if (this.answer?.start) return this.answer.start.track;
    return this.now?.seed.song ? trackOf(this.context.library, this.now.seed.song, { title: this.titles.get(this.now.seed.song) }) : null;
  }

  get tracks() {
    return [this.firstTrack, ...this.items.map(({ track }) => track)].filter(Boolean);
  }

  /** Play from a place in the queue on; -1 is the seed. @param {number} place */
  play(place) {
    const { tracks } = this;
    const nBefore = tracks.length - this.items.length;
    const start = Math.min(Math.max(0, place + nBefore), tracks.length - 1);
    if (tracks.length) this.player.play(tracks, start, { library: this.context.library, name: this.name });
  }

  /** Give the queue to the player if it plays this one. */
  bring() {
    if (!this.isFollowed || !this.answer) return;
    const { tracks, player } = this;
    const ids = (some) => some.map(({ song_id: id }) => id).join();
    if (ids(tracks) !== ids(player.tracks)) player.follow(tracks, tracks.length - this.items.length + (this.now?.heard.length ?? 0));
  }

  /** Note the song that plays: it keeps its place, and the queue grows if few songs are left. */
  follow() {
    const place = this.isFollowed ? this.items.findIndex(({ song }) => song.id === this.player.track?.song_id) : -1;
    if (place >= 0 && this.model && place >= this.model.now.heard.length) {
      const { length } = this.model.now;
      this.model = states.noteHeard(this.model, this.items, place);
      const nOld = this.model.now.heard.length - states.HEARD_AGAIN;
      if (this.model.now.heard.length > states.MAX_HEARD) {
        this.model = states.forgetFirst(this.model, nOld);
        this.answer = { ...this.answer, items: this.items.slice(nOld) };
      }
      if (this.model.now.length > length && this.items.length >= length) this.ask("adding songs");
      this.keep();
    }
    this.render();
  }

  // -------------------------------------------------------------------------------------- thumbs

  /** @param {number} id @param {1 | -1} value */
  pressThumb(id, value) {
    if (!this.model) return;
    this.thumbed = true;
    this.change(states.pressThumb(this.model, id, value), value > 0 ? "choosing more like this" : "choosing other songs");
    this.saveThumbs();
  }

  /** Use the thumbs that the owner gave to this seed before. */
  async takeThumbs() {
    const { model, context, now } = this;
    if (!context.isOwner || !now?.seed.song) return;
    try {
      const { queue } = await ask("api/thumbs", { library: context.library, song: now.seed.song });
      /** @type {[number, 1 | -1][]} */
      const thumbs = Object.entries(queue ?? {}).map(([id, value]) => [Number(id), value]);
      const unnamed = thumbs.map(([id]) => id).filter((id) => !this.titles.has(id));
      if (unnamed.length) for (const { song_id: id, title } of await fetchTracks(context.library, unnamed)) this.titles.set(id, title);
      if (this.model?.now.seed !== model?.now.seed || this.model?.now.thumbs.length || !thumbs.length) return;
      this.model = { .../** @type {states.Model} */ (this.model), now: { .../** @type {states.Request} */ (this.now), thumbs } };
      this.ask();
    } catch (error) {
      console.debug("listen: no thumbs", error);
    }
  }

  /** Save the owner's thumbs, from which models can learn; a visitor's thumbs stay in the tab. */
  saveThumbs() {
    const { context, now } = this;
    if (!context.isOwner || !now?.seed.song) return;
    clearTimeout(this.saving);
    const body = { song: now.seed.song, queue: states.judged(now) };
    this.saving = setTimeout(() => {
      post("api/thumbs", body, { library: context.library }).catch((error) => this.fail(error));
    }, SAVE_AFTER_MS);
  }

  // --------------------------------------------------------------------------------------- others

  /** @param {number[]} ids */
  mark(ids) {
    this.marked = ids;
    this.render();
  }

  /** Show a song of the queue. @param {number} id */
  find(id) {
    this.render();
    this.view?.showRow(id);
  }

  render() {
    this.view?.render();
  }
}
