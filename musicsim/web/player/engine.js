// The engine of the music player: queue, sound and keys. Each browser tab has one engine, with two <audio> elements in
// document.body, one of them for the next song. So Streamlit's mounting and removing of elements does not affect the
// sound. The view is in view.js.

import { BASE, ask, post, resolve } from "../addresses.js";
import { element } from "../elements.js";
import { focusFirstBox } from "../find/boxes.js";
import { hasOwnSpace, isTyping } from "../keys.js";
import { stored } from "../storage.js";
import { BeatMixer } from "./beat_mixer.js";
import * as queues from "./queue.js";

const PRESENTED = "musicsim-presentation"; // class of the document, and key in the tab's storage
const RESTART_AFTER_S = 3; // after this time, "previous" restarts the current song
const PRELOAD_BEFORE_END_S = 25;
const ASK_BEFORE_END_S = 60; // more songs are requested this early, because a large library takes long
const ORPHAN_PAUSE_MS = 4000; // a sound without controls must stop
const PREPARE_BEFORE_END_S = 60; // a fade on the beat begins early, and the server must find the beats
const USUAL_FADE_S = 4; // of songs whose beats do not fit
const GAPLESS_S = 0.05; // the time that a loaded song needs to start
const PULSE_MS = 10_000; // until the next check that the app can be reached, without a click
const PROBE_AFTER_CLICK_MS = 500; // what the click asks for comes first
const PROBE_MS = 6000; // a busy app answers within this time
const PROBE_PAUSE_MS = 3000;
const FADE_STEP_MS = 40;
/** Inaudible, but not zero: Chromium treats a sound without volume in another way, and its clock jumps afterward. */
export const SILENT = 0.001;
const LEVEL_LUFS = -18; // as in ReplayGain 2.0; songs are only made quieter, never louder
const MAX_FAILED = 10; // number of consecutive failures after which the player stops
const MAX_ORDERED = 1000; // number of songs that are ordered for mixing
const MAX_LATELY = 100; // number of the latest songs, which are not repeated automatically
// A song counts as played after this time, or half of the song. Going to the next song before that is a skip, except in
// the first seconds, when people browse, and near the end.
const PLAYED_S = 30;
const BROWSED_S = 5;
const ENDS_AT = 0.9; // share of the song
const USUAL_SETTINGS = { level: true, between: "off", radio: true };

const REASONS = {
  [MediaError.MEDIA_ERR_NETWORK]: "the connection failed",
  [MediaError.MEDIA_ERR_DECODE]: "the audio cannot be decoded",
  [MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED]: "the file is missing, or this browser does not support its format",
};

// Style of the page around the player: full width, no gaps, no fading during a run.
const PAGE_CSS = `
[data-testid="stBottomBlockContainer"] {
  max-width: none; padding: 0 clamp(8px, 2vw, 24px);
  border-top: 1px solid color-mix(in srgb, currentColor 16%, transparent);
  .st-key-musicsim-player { opacity: 1 !important; }
  @media print { display: none; }
}
`;

/** @typedef {queues.Track} Track */

/** Return what is needed to play a song of a library, before the server has described it. @returns {any} */
export function trackOf(library, id, { title = "", artist = "" } = {}) {
  const address = (name) => `songs/${id}/${name}?library=${encodeURIComponent(library)}`;
  return {
    song_id: id, title, artist, url: address("audio"), peaks_url: address("peaks"), cover_url: address("cover"),
    duration_s: null, start_s: 0, loudness: null, reason: "", choice_id: 0, is_described: false,
    tempo: null, key: "",
  };
}

/** Return what is known about songs; unknown ones are left out. @returns {Promise<Track[]>} */
export async function fetchTracks(library, songs) {
  return (await post("api/tracks", { songs }, { library })).tracks;
}

// ---------------------------------------------------------------------------------------- deck

/** An <audio> element and its track. */
class Deck {
  constructor(engine) {
    this.track = null;
    this.startAt = 0; // position in seconds at which to start once the audio is loaded
    this.fade = 1;
    this.audio = document.createElement("audio");
    document.body.append(this.audio);
    this.audio.addEventListener("loadedmetadata", () => this.begin());
    const on = (names, handle) => {
      const heard = () => engine.deck === this && handle();
      for (const name of names.split(" ")) this.audio.addEventListener(name, heard);
    };
    on("play pause durationchange seeked loadedmetadata", () => engine.changed());
    on("timeupdate", () => engine.tick());
    on("playing", () => engine.sounded());
    on("play", () => engine.silenceOthers());
    this.audio.addEventListener("ended", () => (engine.deck === this ? engine.ended() : engine.endFade()));
    on("error", () => engine.fail());
  }

  load(track, url, startAt, preload = "metadata") {
    [this.track, this.startAt, this.fade] = [track, startAt, 1];
    Object.assign(this.audio, { preload, src: url });
  }

  begin() {
    if (this.startAt > 0) this.audio.currentTime = this.startAt;
    this.startAt = 0;
  }

  /** Go back to where the track starts, after it has played silently. */
  rewind() {
    this.audio.pause();
    this.fade = 1;
    Object.assign(this.audio, { playbackRate: 1, currentTime: this.track?.start_s ?? 0 });
  }

  empty() {
    this.track = null;
    this.audio.pause();
    this.audio.removeAttribute("src");
    this.audio.load();
  }
}

// -------------------------------------------------------------------------------------- engine

export class Engine {
  constructor() {
    this.storageKey = `musicsim.player ${BASE}`;
    /** @type {queues.Track[]} */
    this.tracks = []; // {uid, song_id, title, artist, url, peaks_url, duration_s, start_s}
    this.index = -1;
    this.nextUid = 1;
    this.library = ""; // name of the library whose songs are in the queue
    this.name = ""; // name of the queue, for the page that keeps it up to date; empty for other lists
    this.thumbs = new Map(); // 1 or -1, keyed by song id
    this.isOwner = false; // the owner's thumbs, plays and skips are stored
    this.keepsPlays = false;
    this.model = { library: "", name: "" }; // the model that continues a queue of its library
    this.onOpen = (/** @type {Track} */ _track, /** @type {boolean} */ _isSeed) => {}; // shows a song, or similar ones
    this.failed = new Set();
    this.errored = false;
    this.finished = false;
    this.wanted = false; // true if the user wants music; a song that fails to load leaves the element paused
    this.lately = []; // ids of played songs, most recent last
    this.isReported = false; // the current song
    this.peaks = new Map();
    this.view = null;
    this.otherTabs = new BroadcastChannel(this.storageKey);
    this.otherTabs.onmessage = () => this.pauseAll();
    this.settings = { ...USUAL_SETTINGS, ...stored("localStorage", "musicsim.player settings") };
    this.volume = { level: 1, muted: false, ...stored("localStorage", "musicsim.player volume") };
    this.deck = new Deck(this);
    this.spare = new Deck(this);
    /** @type {Deck | null} the deck that is fading out */
    this.leaving = null;
    this.mixer = new BeatMixer(this);
    this.nameDecks();
    document.head.append(element("style", { textContent: PAGE_CSS }));
    document.addEventListener("keydown", (event) => onKey(this, event));
    // "play" does not bubble, so listen in the capture phase
    document.addEventListener("play", ({ target }) => target instanceof HTMLAudioElement && (this.sounds.includes(target) || this.giveWay(target)), { capture: true });
    window.addEventListener("pagehide", () => this.persist());
    this.present(new URLSearchParams(location.search).has("presentation") || stored("sessionStorage", PRESENTED));
    this.restore();
    this.announceHandlers();
    this.isLost = false; // the app cannot be reached
    this.watchApp();
  }

  /** Stop other tabs and other players on this page, so that only one sound plays. */
  silenceOthers(sounds = this.sounds) {
    this.otherTabs.postMessage("playing");
    for (const other of document.querySelectorAll("audio")) if (!sounds.includes(other)) other.pause();
  }

  /** Pause the queue, because another player on this page has started. */
  giveWay(sound) {
    this.pause();
    this.silenceOthers([sound]);
  }

  pauseAll() {
    this.pause();
    for (const sound of document.querySelectorAll("audio")) sound.pause();
  }

  /** Notice when the app cannot be reached, because clicks then have no effect. */
  watchApp() {
    for (const event of ["online", "offline"]) window.addEventListener(event, () => this.probe());
    // a connection that breaks silently looks open for minutes
    document.addEventListener("click", () => {
      clearTimeout(this.clickProbe);
      this.clickProbe = setTimeout(() => this.probe(), PROBE_AFTER_CLICK_MS);
    }, true);
    setInterval(() => document.visibilityState === "visible" && this.probe(), PULSE_MS);
  }

  /** Check that the app answers; if not, tell the user and check again until it does. */
  async probe() {
    if (this.isProbing) return;
    this.isProbing = true;
    clearTimeout(this.nextProbe);
    const isThere = await this.isThere();
    this.isProbing = false;
    if (isThere === this.isLost) this.setLost(!isThere);
    if (!isThere) this.nextProbe = setTimeout(() => this.probe(), PROBE_PAUSE_MS);
  }

  isThere() {
    const options = /** @type {RequestInit} */ ({ cache: "no-store", signal: AbortSignal.timeout(PROBE_MS) });
    return fetch(resolve("/_stcore/health"), options).then(({ ok }) => ok, () => false);
  }

  setLost(isLost) {
    this.isLost = isLost;
    this.view?.renderLost();
  }

  /** Load the page again if the app can be reached. */
  async retry() {
    if (await this.isThere()) location.reload();
    else this.view?.notify("The app still cannot be reached. Is it running?", "error");
  }

  get audio() {
    return this.deck.audio;
  }

  get sounds() {
    return [this.deck.audio, this.spare.audio];
  }

  get track() {
    return this.tracks[this.index] ?? null;
  }

  get hasNext() {
    return this.index + 1 < this.tracks.length;
  }

  /** True if more songs may follow the last one, which must not be an upload or a hidden song. */
  get goesOn() {
    const last = this.tracks.at(-1);
    return this.settings.radio && Boolean(last?.song_id) && !last?.is_blind;
  }

  get state() {
    if (!this.track) return "empty";
    if (this.errored) return "error";
    return this.audio.paused ? "paused" : "playing";
  }

  get position() {
    return this.audio.readyState > 0 ? this.audio.currentTime : this.deck.startAt;
  }

  get duration() {
    const known = this.audio.readyState > 0 && Number.isFinite(this.audio.duration);
    return known ? this.audio.duration : (this.track?.duration_s ?? NaN);
  }

  // ------------------------------------------------------------------------- what the page gives

  /** Take what the server says about the tab: the open library and its model, and what the user may do. */
  receive({ library, model, isOwner, keepsPlays }) {
    const isOther = this.isOwner !== isOwner || !this.library;
    Object.assign(this, { isOwner, keepsPlays, model: { library, name: model } });
    this.library ||= library;
    if (isOther) this.fetchThumbs();
    this.changed();
  }

  /** Replace the queue and play from a track on. @param {Track[]} tracks @param {number} start @param {{library: string, name?: string}} of */
  play(tracks, start, { library, name = "" }) {
    const isOther = this.library !== library;
    Object.assign(this, { library, name });
    if (isOther) this.fetchThumbs();
    this.failed.clear();
    this.tracks = this.entries(tracks);
    this.load(start, { play: true });
    this.describe();
  }

  /** Play songs of a library. */
  playSongs(ids, start, { library, name = "", titles = /** @type {any[]} */ ([]) }) {
    this.play(ids.map((id, i) => trackOf(library, id, titles[i])), start, { library, name });
  }

  /** Ask the server for what is not known yet about songs of the queue, which may play already. */
  async describe() {
    const { library } = this;
    const unknown = this.tracks.filter((track) => track.is_described === false);
    if (!unknown.length) return;
    const tracks = await fetchTracks(library, unknown.map((track) => track.song_id)).catch((error) => {
      console.debug("player: songs without a description", error);
      return /** @type {Track[]} */ ([]);
    });
    if (library !== this.library) return; // its songs have other ids
    this.tracks = queues.describe(this.tracks, tracks);
    this.announce();
    this.queueChanged();
  }

  /** Append songs, without playing; songs of another library replace the queue. */
  async enqueueSongs(ids, library) {
    const tracks = await fetchTracks(library, ids);
    if (tracks.length) this.enqueue(tracks, library);
  }

  enqueue(tracks, library) {
    if (this.tracks.length && this.library !== library) { this.play(tracks, 0, { library }); return; }
    this.library = library;
    this.tracks.push(...this.entries(tracks));
    if (this.index < 0) this.load(0, { play: false });
    const what = tracks.length === 1 ? `“${tracks[0].title}”` : `${tracks.length} songs`;
    this.view?.notify(`Added to the queue: ${what}`, "info");
    this.queueChanged();
  }

  /** @returns {Track[]} */
  entries(tracks) {
    return tracks.map((track) => ({ ...track, uid: this.nextUid++ }));
  }

  /** @param {queues.Queue} queue */
  change({ tracks, index }) {
    this.tracks = tracks;
    this.index = index;
  }

  /** Replace the queue around the current song, which keeps its place among the tracks. If it is not among them, the
   * first `nBefore` tracks count as played, and the others come after it. */
  follow(tracks, nBefore) {
    this.change(queues.follow(this, this.entries(tracks), nBefore));
    if (!this.track) this.load(0, { play: false });
    this.queueChanged();
    if ((this.errored || this.finished) && this.wanted) this.next();
  }

  // ----------------------------------------------------------------------------------- thumbs

  async fetchThumbs() {
    if (!this.isOwner || !this.library) return;
    const { library } = this;
    try {
      const { player } = await ask("api/thumbs", { library });
      if (library !== this.library) return;
      this.thumbs = new Map(Object.entries(player ?? {}).map(([id, value]) => [Number(id), value]));
      this.changed();
    } catch (error) {
      console.debug("player: no thumbs", error);
    }
  }

  /** Press or release a thumb on the current song. A visitor's thumbs stay in the tab. */
  async rate(value) {
    const song = this.track?.song_id;
    if (!song) return;
    const before = this.thumb(song);
    this.setThumb(song, before === value ? 0 : value);
    if (!this.isOwner) return;
    try {
      await post("api/thumbs", { player: { [song]: this.thumb(song) } }, { library: this.library });
    } catch (error) {
      this.setThumb(song, before);
      this.view?.notify(String(error instanceof Error ? error.message : error), "error");
    }
  }

  setThumb(song, value) {
    if (value) this.thumbs.set(song, value);
    else this.thumbs.delete(song);
    this.changed();
  }

  thumb(song) {
    return this.thumbs.get(song) ?? 0;
  }

  // -------------------------------------------------------------------------------------- moving

  /**
   * Go to a song in the queue; crossfade for `over` seconds if the spare deck has loaded it.
   * @param {number} index
   * @param {{play: boolean, at?: number, over?: number}} how
   */
  load(index, { play, at, over = 0 }) {
    this.mixer.stop();
    this.endFade();
    this.begin(index, play);
    const { track } = this;
    const isReady = this.spare.track?.uid === track.uid && !this.spare.audio.error && at === undefined;
    // some browsers let only the element play that a click started, so use the same one if possible
    if (isReady && this.settings.between !== "off") {
      this.swapDecks();
      if (over) this.fade(over);
      else this.endFade();
    } else {
      this.deck.load(track, resolve(track.url), at ?? track.start_s);
    }
    this.setVolumes();
    if (play) this.start();
    this.announce();
    this.queueChanged();
  }

  begin(index, isWanted) {
    this.index = index;
    [this.errored, this.finished, this.isReported] = [false, false, false];
    this.wanted = isWanted;
  }

  swapDecks() {
    [this.deck, this.spare] = [this.spare, this.deck];
    this.leaving = this.spare;
    this.nameDecks();
  }

  /** Go to the next song, which the spare deck already plays silently. */
  takeOver() {
    this.begin(this.index + 1, true);
    this.swapDecks();
    this.sounded();
    this.announce();
    this.queueChanged();
  }

  pause() {
    this.wanted = false;
    this.mixer.stop();
    this.endFade();
    this.audio.pause();
  }

  start() {
    this.wanted = true;
    this.audio.play().catch((error) => {
      if (error.name === "NotAllowedError") this.wanted = false;
      // The browser refused to play without a gesture, or the next song replaced this one; both are harmless.
      // If a song cannot be played, the element's "error" event reports it.
      console.debug("player:", error.name);
      this.changed();
    });
  }

  toggle() {
    if (!this.track) return;
    if (!this.audio.paused && !this.errored) this.pause();
    else if (this.errored) this.load(this.index, { play: true });
    else if (this.finished && this.hasNext) this.next();
    else this.start();
  }

  /** Play the next song; after the last one, play the continuation of the queue. */
  async next() {
    const { track } = this;
    const isLeft = !this.finished && !this.errored && this.position < ENDS_AT * this.duration;
    if (isLeft && this.heard >= BROWSED_S) this.report("skip");
    if (!this.hasNext) await this.goOn();
    if (this.hasNext && this.track === track) this.load(this.index + 1, { play: true });
  }

  /** Seconds of the current song that were heard. */
  get heard() {
    const { played } = this.audio;
    return Array.from({ length: played.length }, (_, i) => played.end(i) - played.start(i)).reduce((sum, s) => sum + s, 0);
  }

  /** Store a play or a skip of the current song, once. */
  report(kind) {
    const { track } = this;
    if (this.isReported || !this.keepsPlays || !track?.song_id || track.is_blind) return;
    this.isReported = true;
    const address = new URL(resolve("plays"));
    address.searchParams.set("library", this.library);
    address.searchParams.set("song", String(track.song_id));
    address.searchParams.set("kind", kind);
    if (track.choice_id) address.searchParams.set("choice", track.choice_id);
    if (kind === "skip") address.searchParams.set("seconds", String(Math.round(this.heard)));
    fetch(address, { method: "POST", keepalive: true }).catch((error) => console.debug("player: not stored", error));
  }

  previous() {
    if (!this.track) return;
    if (this.position > RESTART_AFTER_S || this.index === 0) {
      this.seek(0);
      this.start();
    } else {
      this.load(this.index - 1, { play: true });
    }
  }

  jump(uid) {
    const index = this.tracks.findIndex((track) => track.uid === uid);
    if (index >= 0) this.load(index, { play: true });
  }

  seek(seconds) {
    if (!this.track) return;
    this.mixer.stop();
    this.endFade();
    const to = Math.max(0, Math.min(seconds, Number.isFinite(this.duration) ? this.duration : seconds));
    if (this.audio.readyState > 0) this.audio.currentTime = to;
    else this.deck.startAt = to;
    this.finished = false;
    this.changed();
  }

  ended() {
    this.finished = true;
    this.next();
    this.changed();
  }

  /** Show a message that the current song cannot be played, and go to the next song, if any. */
  fail() {
    const track = this.track;
    if (!track || this.audio.error?.code === MediaError.MEDIA_ERR_ABORTED) return;
    const reason = REASONS[this.audio.error?.code] ?? "the browser did not give a reason";
    this.failed.add(track.uid);
    this.errored = true;
    const others = this.failed.size > 1 ? ` Earlier songs that failed: ${this.failed.size - 1}.` : "";
    this.view?.notify(`“${track.title}” cannot be played: ${reason}.${others}`, "error");
    const later = queues.nextPlayable(this, this.failed);
    const goesOn = this.wanted && this.failed.size < MAX_FAILED;
    if (goesOn && later >= 0) this.load(later, { play: true });
    else if (goesOn && !this.hasNext) this.next();
    this.changed();
  }

  /** Record that a song has started. */
  sounded() {
    this.failed.clear();
    const { song_id: song } = this.track;
    this.lately = [...this.lately.filter((id) => id !== song), song].slice(-MAX_LATELY);
  }

  // ------------------------------------------------------------------- from one song to the next

  nameDecks() {
    this.deck.audio.dataset.testid = "player-audio";
    this.spare.audio.dataset.testid = "player-spare";
  }

  /** The overlap of two songs in seconds, at most a third of either song. */
  get overlap() {
    const { between } = this.settings;
    if (between === "off") return 0;
    if (between === "gapless") return GAPLESS_S;
    return Math.min(this.mixes ? USUAL_FADE_S : Number(between), this.duration / 3, this.spare.audio.duration / 3);
  }

  /** True if songs are mixed on the beat. */
  get mixes() {
    return this.settings.between === "beats";
  }

  get isNextLoaded() {
    const next = this.tracks[this.index + 1];
    return Boolean(next) && this.spare.track?.uid === next.uid && this.spare.audio.readyState >= 3;
  }

  /** Start the next song shortly before this one ends; called four times per second. */
  handOver() {
    clearTimeout(this.handingOver);
    if (!this.isNextLoaded || !this.overlap) return;
    if (this.mixes) this.mixer.tick();
    if (this.mixer.isBusy) return;
    const left = () => this.duration - this.position - this.overlap;
    if (this.audio.paused || left() > 0.5) return;
    const begin = () => !this.audio.paused && left() < 0.05 && this.load(this.index + 1, { play: true, over: this.overlap });
    this.handingOver = setTimeout(begin, 1000 * left());
  }

  /** Crossfade at equal power; in gapless mode, the previous song just ends. */
  fade(seconds) {
    if (seconds <= GAPLESS_S) return;
    const began = performance.now();
    this.deck.fade = 0;
    this.fading = setInterval(() => {
      const share = Math.min(1, (performance.now() - began) / 1000 / seconds);
      if (share === 1) this.endFade();
      else this.setFade(share);
    }, FADE_STEP_MS);
  }

  /** Set the volumes at a moment of a fade, of which this share is over. */
  setFade(share) {
    if (this.leaving) this.leaving.fade = Math.cos((share * Math.PI) / 2);
    this.deck.fade = Math.max(SILENT, Math.sin((share * Math.PI) / 2));
    this.setVolumes();
  }

  endFade() {
    clearTimeout(this.handingOver);
    clearInterval(this.fading);
    this.leaving?.empty();
    this.leaving = null;
    this.deck.fade = 1;
    this.setVolumes();
  }

  // ---------------------------------------------------------------------------------- loudness

  setVolumes() {
    for (const { audio, fade, track } of [this.deck, this.spare]) this.setVolumeOf(audio, track, fade);
  }

  /** Set the volume of a sound so that its track is as loud as all others. */
  setVolumeOf(audio, track, fade = 1) {
    const louder = this.settings.level && track?.loudness != null ? track.loudness - LEVEL_LUFS : 0;
    audio.volume = this.volume.level * fade * 10 ** (-Math.max(0, louder) / 20);
    audio.muted = this.volume.muted;
  }

  setVolume(volume) {
    this.volume = { ...this.volume, ...volume };
    stored("localStorage", "musicsim.player volume", this.volume);
    this.setVolumes();
    this.changed();
  }

  set(setting) {
    this.settings = { ...this.settings, ...setting };
    stored("localStorage", "musicsim.player settings", this.settings);
    this.askedBehind = null;
    if (!this.mixes) this.mixer.stop();
    this.setVolumes();
    this.changed();
  }

  // ---------------------------------------------------------------- the end of the queue

  /** Append more songs that follow the last one; they are requested only once per last song. */
  goOn() {
    const last = this.tracks.at(-1);
    if (!last || !this.goesOn || last.uid === this.askedBehind) return this.asking ?? Promise.resolve();
    this.askedBehind = last.uid;
    this.asking = this.moreBehind(last).then((tracks) => {
      if (this.tracks.at(-1) !== last) return; // the queue has changed in the meantime
      const isEnd = !tracks.length && !this.failed.has(last.uid); // else the message is about the failure
      if (isEnd) this.view?.notify("The music ends with this song: no other playable song was found.", "info");
      this.tracks.push(...this.entries(tracks));
      this.queueChanged();
    });
    return this.asking;
  }

  async moreBehind(last) {
    const asked = new URL(resolve("radio"));
    asked.searchParams.set("library", this.library);
    if (this.model.name && this.model.library === this.library) asked.searchParams.set("model", this.model.name);
    asked.searchParams.set("song", String(last.song_id));
    // the latest songs first, because a small library cannot exclude all of them
    for (const song of queues.recentSongs(this.lately, this.tracks, MAX_LATELY)) asked.searchParams.append("lately", String(song));
    try {
      const answer = await fetch(asked);
      return answer.ok ? await answer.json() : [];
    } catch (error) {
      console.debug("player: no more songs", error);
      return [];
    }
  }

  // --------------------------------------------------------------------------------------- queue

  remove(uid) {
    const { track, audio: { paused } } = this;
    const isLast = !this.hasNext;
    this.change(queues.remove(this, uid));
    if (!this.tracks.length) this.clear();
    else if (track?.uid === uid) this.load(this.index, { play: !paused && !isLast });
    this.queueChanged();
  }

  move(uid, by) {
    this.change(queues.move(this, uid, by));
    this.queueChanged();
  }

  /** Order the songs after the current one so that keys and tempos of neighbors fit. */
  async orderForMixing() {
    const { library } = this;
    const ids = this.tracks.slice(Math.max(this.index, 0)).map((track) => track.song_id).filter(Boolean).slice(0, MAX_ORDERED);
    try {
      const { songs } = await post("api/songs/order", { songs: ids }, { library });
      if (library !== this.library) return;
      this.change(queues.order(this, songs.slice(this.track?.song_id === songs[0] ? 1 : 0)));
      this.queueChanged();
    } catch (error) {
      this.view?.notify(String(error instanceof Error ? error.message : error), "error");
    }
  }

  clear() {
    [this.tracks, this.index, this.errored] = [[], -1, false];
    this.pause();
    this.deck.empty();
    this.announce();
    this.queueChanged();
  }

  // -------------------------------------------------------------------------------------- memory

  persist() {
    const { index, position, library, name, lately } = this;
    const thumbs = [...this.thumbs];
    // do not store hidden songs: "Song 1" is meaningful only on the page with the question
    const tracks = this.tracks.some((track) => track.is_blind) ? [] : this.tracks;
    stored("sessionStorage", this.storageKey, { tracks, index, position, library, name, thumbs, lately });
  }

  restore() {
    const saved = stored("sessionStorage", this.storageKey);
    if (!Array.isArray(saved?.tracks)) return;
    // the browser has forgotten the files of sounds from outside the library
    const isLeft = (/** @type {any} */ track) => !track.url.startsWith("blob:");
    this.tracks = this.entries(saved.tracks.filter(isLeft));
    saved.index -= saved.tracks.slice(0, saved.index).filter((/** @type {any} */ track) => !isLeft(track)).length;
    [this.library, this.name] = [saved.library, saved.name];
    this.thumbs = new Map(saved.thumbs);
    this.lately = saved.lately ?? [];
    if (this.tracks[saved.index]) this.load(saved.index, { play: false, at: saved.position });
    this.describe();
  }

  tick() {
    const second = Math.floor(this.position);
    if (second !== this.lastSecond) {
      this.lastSecond = second;
      this.persist();
      this.preload();
    }
    if (this.heard >= Math.min(PLAYED_S, this.duration / 2)) this.report("play");
    this.handOver();
    this.view?.renderPosition();
  }

  preload() {
    const left = this.duration - this.position;
    if (this.audio.paused || !(left < ASK_BEFORE_END_S)) return;
    if (!this.hasNext) this.goOn();
    const next = this.tracks[this.index + 1];
    if (next && this.mixes) this.mixer.prepare(this.track, next);
    if (!next || left > (this.mixes ? PREPARE_BEFORE_END_S : PRELOAD_BEFORE_END_S) || this.leaving || this.spare.track?.uid === next.uid) return;
    this.spare.load(next, resolve(next.url), next.start_s, "auto");
    this.setVolumes();
    this.peaksOf(next);
  }

  /** Return the heights of a track's waveform, or null. */
  peaksOf(track) {
    if (!track.peaks_url) return Promise.resolve(null);
    const url = resolve(track.peaks_url);
    if (!this.peaks.has(url)) {
      const list = (values) => (Array.isArray(values) && values.length ? values : null);
      const fetched = fetch(url)
        .then((answer) => (answer.ok ? answer.json().then(list) : null))
        .catch(() => null);
      this.peaks.set(url, fetched);
      if (this.peaks.size > 50) this.peaks.delete(this.peaks.keys().next().value);
    }
    return this.peaks.get(url);
  }

  // ----------------------------------------------------------------------------- view and system

  changed() {
    this.view?.render();
    this.persist();
    const media = navigator.mediaSession;
    if (!media) return;
    media.playbackState = { playing: "playing", paused: "paused" }[this.state] ?? "none";
    const [duration, position] = [this.audio.duration, this.audio.currentTime];
    if (Number.isFinite(duration) && position <= duration) media.setPositionState?.({ duration, position });
  }

  queueChanged() {
    this.view?.renderQueue();
    this.changed();
  }

  announce() {
    this.view?.announce();
    document.dispatchEvent(new CustomEvent("musicsim-song"));
    if (!navigator.mediaSession) return;
    const { title, artist, cover_url: cover } = this.track ?? {};
    const artwork = cover ? [{ src: resolve(cover) }] : [];
    navigator.mediaSession.metadata = this.track ? new MediaMetadata({ title, artist, artwork }) : null;
  }

  /** Turn presentation mode on or off: large type and no sidebar, for a distant screen. */
  present(isOn) {
    document.documentElement.classList.toggle(PRESENTED, Boolean(isOn));
    stored("sessionStorage", PRESENTED, Boolean(isOn));
    this.view?.render();
  }

  get isPresented() {
    return document.documentElement.classList.contains(PRESENTED);
  }

  announceHandlers() {
    const handlers = {
      play: () => this.audio.paused && this.toggle(),
      pause: () => this.pauseAll(),
      previoustrack: () => this.previous(),
      nexttrack: () => this.next(),
      seekto: (/** @type {MediaSessionActionDetails} */ { seekTime }) => this.seek(seekTime ?? 0),
    };
    for (const [action, handle] of Object.entries(handlers)) {
      navigator.mediaSession?.setActionHandler(/** @type {MediaSessionAction} */ (action), handle);
    }
  }

  /** Show the player below an element; `View` is the class that shows the engine's state. */
  attach(parent, View) {
    clearTimeout(this.orphaned);
    const root = parent.querySelector(".player");
    if (this.view?.root === root) return;
    this.view?.close();
    this.view = new View(this, root);
    this.view.renderQueue();
    this.view.render();
  }

  detach(parent) {
    if (!this.view || !parent.contains(this.view.root)) return; // a different view has replaced this one
    this.view.close();
    this.view = null;
    this.orphaned = setTimeout(() => this.pause(), ORPHAN_PAUSE_MS);
  }
}

// ---------------------------------------------------------------------------------------- keys

function onKey(engine, event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.composedPath()[0];
  if (!(target instanceof Element) || isTyping(target)) return;
  if (event.key === "/") {
    if (focusFirstBox()) event.preventDefault();
    return;
  }
  if (event.key === "?") {
    engine.view?.showKeys();
    event.preventDefault();
    return;
  }
  if (event.key === "p") {
    engine.present(!engine.isPresented);
    return;
  }
  const actions = { " ": () => engine.toggle(), j: () => engine.previous(), k: () => engine.next() };
  const act = actions[event.key];
  const isTaken = event.key === " " && hasOwnSpace(target);
  if (!act || event.shiftKey || event.repeat || isTaken || !engine.track) return;
  event.preventDefault();
  act();
}
