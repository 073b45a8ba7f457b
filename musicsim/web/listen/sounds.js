// Sounds from outside the library: a dropped file, or a recording. The file stays in the tab, which also plays it; the
// server analyzes it, and knows it by a digest of its content.

import { ask } from "../addresses.js";

const MAX_SOUNDS = 5;
const LOOK_MS = 1000; // interval at which the place in line is looked up

export class Sounds {
  constructor() {
    /** @type {Map<string, any>} by digest, the oldest first */
    this.known = new Map();
  }

  /** @param {string} digest @returns {any} */
  get(digest) {
    return this.known.get(digest) ?? null;
  }

  /** Remember what is known about a sound; without its file, it cannot be heard. @param {any} sound */
  remember(sound) {
    this.known.delete(sound.sound);
    this.known.set(sound.sound, sound);
    for (const [digest, { track }] of [...this.known].slice(0, -MAX_SOUNDS)) {
      if (track) URL.revokeObjectURL(track.url);
      this.known.delete(digest);
    }
  }

  /** Have a file analyzed, and return what is known about it. @param {Blob} file @param {string} name @param {object} query @param {AbortSignal} signal @param {(nAhead: number) => void} [onWait] */
  async send(file, name, query, signal, onWait = (/** @type {number} */ _nAhead) => {}) {
    const headers = { "Content-Type": "application/octet-stream" };
    const ticket = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const looking = setInterval(async () => {
      const { n_ahead: nAhead } = await ask("api/sounds/line", { ticket }, { signal }).catch(() => ({ n_ahead: null }));
      if (nAhead !== null && !signal.aborted) onWait(nAhead);
    }, LOOK_MS);
    const sent = ask("api/sounds", { ...query, name, ticket }, { method: "POST", body: file, headers, signal });
    const found = await sent.finally(() => clearInterval(looking));
    const url = URL.createObjectURL(file);
    const track = {
      song_id: 0, title: name, artist: "", url, peaks_url: "", cover_url: "", duration_s: found.duration_s, start_s: 0,
      loudness: null, reason: "", choice_id: 0,
    };
    const sound = { ...found, name, file, track };
    this.remember(sound);
    return sound;
  }
}

/** Return what survives a reload of a sound: everything but its file. @param {any} sound */
export function factsOf(sound) {
  if (!sound) return null;
  const { file: _file, track: _track, peaks: _peaks, ...facts } = sound;
  return facts;
}

/** Return mono samples as a WAV file of 16 bits. @param {Float32Array} samples @param {number} rate */
export function toWav(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const text = (/** @type {number} */ at, /** @type {string} */ words) => {
    for (const [i, letter] of [...words].entries()) view.setUint8(at + i, letter.charCodeAt(0));
  };
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // samples are integers
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  for (const [i, value] of samples.entries()) view.setInt16(44 + 2 * i, Math.round(32767 * Math.max(-1, Math.min(1, value))), true);
  return new Blob([view], { type: "audio/wav" });
}

/** Records from the microphone until it is stopped. */
export class Recorder {
  /** Begin; rejects with a sentence if there is no microphone. */
  static async begin() {
    if (!navigator.mediaDevices) throw new Error("Recording needs an address that begins with https:// or this computer's own.");
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      throw new Error("No microphone can be used: allow it in the browser.");
    }
    return new Recorder(stream);
  }

  /** @param {MediaStream} stream */
  constructor(stream) {
    this.stream = stream;
    /** @type {Blob[]} */
    this.parts = [];
    this.since = performance.now();
    this.media = new MediaRecorder(stream);
    this.media.addEventListener("dataavailable", ({ data }) => this.parts.push(data));
    this.media.start();
  }

  get seconds() {
    return (performance.now() - this.since) / 1000;
  }

  /** End, and return the recording as a WAV file, which the server reads on every system. */
  async stop() {
    const ended = new Promise((done) => this.media.addEventListener("stop", done, { once: true }));
    this.media.stop();
    await ended;
    for (const track of this.stream.getTracks()) track.stop();
    const context = new AudioContext();
    try {
      const sound = await context.decodeAudioData(await new Blob(this.parts).arrayBuffer());
      const samples = sound.getChannelData(0);
      return toWav(samples, sound.sampleRate);
    } finally {
      context.close();
    }
  }
}
