// Fades on the beat with the two decks of the engine. The next song starts silently, and its position is corrected until
// its beats coincide with those of the song that is playing. If anything goes wrong, the engine's crossfade takes over.
//
// What is heard is never slowed down: at a speed below 1, Chromium plays 20 to 25 ms ahead of its clock; at higher speeds,
// the difference is below 3 ms (experiments/live_mixing.py).

import { ask } from "../addresses.js";
import * as beats from "./beats.js";
import { SILENT } from "./engine.js";

const STEP_MS = 40;
const SETTLE_MS = 150; // positions are not exact right after a start or a jump
const LATEST = 0.3; // share of the fade after which it begins even if the beats do not coincide
const RATE_STEP = 0.0005; // smaller changes of the speed are not made
const UNHEARD_START_S = 0.1; // a song that is this late is aligned by its speed, without a jump
const MAX_PLANS = 50;

export class BeatMixer {
  /** @param {import("./engine.js").Engine} engine */
  constructor(engine) {
    this.engine = engine;
    /** @type {Map<string, Promise<beats.Transition | null>>} */
    this.asked = new Map();
    /** @type {beats.Transition | null} */
    this.plan = null; // from the current song to the next one
    this.planned = ""; // the songs of the plan
    /** @type {beats.Transition | null} */
    this.mixed = null; // the plan of the mix that is being made
    this.phase = "idle"; // then gliding, warming, fading, returning
    /** @type {number[]} */
    this.offsets = [];
    this.settled = 0; // time from which offsets count
    this.hasJumped = false;
    this.jumpTakes = 0; // seconds that the next song loses in a jump
    this.isOnBeat = false; // this fade
    this.from = 0; // position of the first song at which the fade began
    this.since = 0; // time at which the fade ended
  }

  /** Ask for the transition to a track, unless it is known. @param {any} first @param {any} next */
  async prepare(first, next) {
    const { library } = this.engine;
    const name = `${library} ${first.song_id} ${next.song_id}`;
    if (this.planned === name) return;
    [this.plan, this.planned] = [null, name];
    if (!first.song_id || !next.song_id) return;
    if (!this.asked.has(name)) this.asked.set(name, this.fetchPlan(library, first.song_id, next.song_id));
    if (this.asked.size > MAX_PLANS) this.asked.delete(/** @type {string} */ (this.asked.keys().next().value));
    const plan = await this.asked.get(name);
    if (this.planned !== name) return;
    this.plan = plan ?? null;
    this.engine.changed();
  }

  fetchPlan(library, song, next) {
    return ask(`api/songs/${song}/transition`, { next_id: next, library }).catch((error) => {
      console.debug("player: no transition", error);
      return null;
    });
  }

  /** What happens between the current song and the next one; empty if it is not known yet. */
  get words() {
    return this.plan && this.engine.hasNext ? beats.describe(this.plan) : "";
  }

  /** True while a mix is being made, and the engine must not start the next song. */
  get isBusy() {
    return this.phase !== "idle";
  }

  /** Begin to mix if it is time for it; called several times per second. */
  tick() {
    const { engine, plan } = this;
    if (this.phase !== "idle" || !plan || plan.reason || engine.audio.paused) return;
    const { position } = engine;
    // it is too late if the listener has just moved to a later position
    if (position < beats.beginOf(plan) || position > beats.warmUpOf(plan)) return;
    this.mixed = plan;
    this.phase = "gliding";
    this.loop = setInterval(() => this.step(), STEP_MS);
  }

  step() {
    const { engine, mixed: plan } = this;
    if (!plan || engine.audio.paused) { this.stop(); return; }
    ({ gliding: () => this.glide(plan), warming: () => this.warm(plan), fading: () => this.fade(plan), returning: () => this.giveBack(plan) })[this.phase]?.();
  }

  glide(plan) {
    const { engine } = this;
    const { audio, position, spare } = engine;
    setRate(audio, beats.rateAt(plan, position));
    if (position < beats.warmUpOf(plan)) return;
    if (!engine.isNextLoaded) { this.stop(); return; }
    this.phase = "warming";
    spare.fade = SILENT;
    engine.setVolumes();
    const start = beats.partnerOf(plan, position);
    if (start > UNHEARD_START_S) spare.audio.currentTime = start;
    spare.audio.playbackRate = plan.rates[1];
    this.settle();
    spare.audio.play().catch((error) => {
      console.debug("player: no mix", error.name);
      if (this.phase === "warming" && spare === engine.spare) this.stop();
    });
  }

  /** Ignore the offsets of the next moment. */
  settle() {
    this.offsets = [];
    this.settled = performance.now() + SETTLE_MS;
  }

  /** Correct the position of a deck's song, and return true if its beats coincide with those of the first song. */
  align(plan, first, second, isHeard) {
    if (second.audio.seeking || second.audio.paused || second.audio.readyState < 3) this.settle();
    if (performance.now() < this.settled) return false;
    const [position, partner] = [first.audio.currentTime, second.audio.currentTime];
    this.offsets = beats.withOffset(this.offsets, (partner - beats.partnerOf(plan, position)) / plan.rates[1]);
    const { jump, change, isAligned } = beats.correct(this.offsets, { isHeard });
    if (jump) {
      // what a jump takes is what was missing after the last one
      if (this.hasJumped) this.jumpTakes += jump;
      this.hasJumped = true;
      second.audio.currentTime = Math.max(0, partner + (jump + this.jumpTakes) * plan.rates[1]);
      this.settle();
    } else if (isHeard) {
      setRate(second.audio, plan.rates[1] * (1 + Math.max(0, change)));
      setRate(first.audio, plan.rates[0] * (1 + Math.max(0, -change)));
    } else {
      setRate(second.audio, plan.rates[1] * (1 + change));
    }
    return isAligned;
  }

  warm(plan) {
    const { engine } = this;
    const { deck, spare, position } = engine;
    if (!engine.isNextLoaded || spare.audio.ended) { this.stop(); return; }
    const isAligned = this.align(plan, deck, spare, false);
    if (position < plan.leave_s) return;
    const isLate = beats.shareOf(plan, plan.leave_s, position) > LATEST;
    if (!isAligned && !isLate) return;
    if (spare.audio.paused || spare.audio.readyState < 3) { this.stop(); return; }
    this.isOnBeat = isAligned;
    this.from = position;
    this.phase = "fading";
    engine.takeOver();
    this.fade(plan);
  }

  fade(plan) {
    const { engine } = this;
    const { deck, leaving } = engine;
    const share = leaving && !leaving.audio.paused ? beats.shareOf(plan, this.from, leaving.audio.currentTime) : 1;
    if (share < 1 && leaving) {
      if (this.isOnBeat) this.align(plan, leaving, deck, true);
      engine.setFade(share);
      return;
    }
    this.phase = "returning";
    this.since = performance.now();
    engine.endFade();
  }

  giveBack(plan) {
    const { audio } = this.engine;
    setRate(audio, beats.rateAfter(plan, (performance.now() - this.since) / 1000));
    if (audio.playbackRate === 1) this.end();
  }

  end() {
    clearInterval(this.loop);
    this.phase = "idle";
    this.hasJumped = false;
  }

  /** Stop mixing: the song that is heard continues at its own speed, and the next one is ready to start. */
  stop() {
    if (this.phase === "idle") return;
    const { engine, phase } = this;
    this.end();
    engine.audio.playbackRate = 1;
    if (phase === "warming") engine.spare.rewind();
    if (phase === "fading") engine.endFade();
  }
}

/** Change the speed of a sound if the difference is large enough. */
function setRate(audio, rate) {
  const rounded = Math.abs(rate - 1) < RATE_STEP ? 1 : rate;
  if (Math.abs(audio.playbackRate - rounded) >= RATE_STEP || (rounded === 1 && audio.playbackRate !== 1)) audio.playbackRate = rounded;
}
