// What the listener wants to hear on Listen, as a value: the seed of the queue, and all changes to it. Changes are
// functions that return a new value. The server gets all of it with each request, and remembers nothing.

export const N_SONGS = 20; // in a new queue
const MORE = 10; // songs that are added when few are left
const FEW = 6;
const MAX_STEPS = 30; // of undo
export const MAX_CALMER = 4;
export const SURPRISES = [0.3, 0.5, 0.7, 0.9]; // steps of "More surprising"
export const MAX_EXAMPLES = 25;
const MAX_REMOVED = 4000;
export const MAX_HEARD = 60; // songs heard that a request names
export const HEARD_AGAIN = 30; // songs heard that are left after forgetting others
export const NEAR = 0.8; // a song is near the seed if at least this share of the library is farther away

/**
 * The start of a queue: a song, a sound from outside the library, or neither for words alone.
 * @typedef {{song?: number, sound?: string}} Seed
 * @typedef {{song_id: number, reason: string, similarity: number | null}} Heard
 * @typedef {object} Request
 * @property {Seed} seed
 * @property {number[]} opening songs that come first
 * @property {Record<string, 1 | -1>} examples 1 (like) or -1 (unlike), keyed by song id
 * @property {[number, number] | null} part of the seed, in seconds
 * @property {number | null} target song that the queue leads to
 * @property {number} calmer steps; livelier if negative
 * @property {number} surprise index of SURPRISES
 * @property {Record<string, number>} pins song ids, keyed by place
 * @property {number[]} removed
 * @property {[number, 1 | -1 | 0][]} thumbs in the order in which they were given
 * @property {Record<string, any>} search filters and options that differ from the defaults, named as in /api/options
 * @property {Heard[]} heard
 * @property {number} length
 * @property {number} number the same number gives the same queue
 * @typedef {{now: Request, before: Request[]}} Model
 */

/** Start the queue of another seed; filters stay. @param {Seed} seed @param {Partial<Request>} [more] @param {Record<string, any>} [search] @returns {Model} */
export function begin(seed, more = {}, search = {}) {
  const now = {
    seed, opening: [], examples: {}, part: null, target: null, calmer: 0, surprise: 0, pins: {}, removed: [],
    thumbs: [], search, heard: [], length: N_SONGS, number: Math.floor(Math.random() * 2 ** 31), ...more,
  };
  return { now, before: [] };
}

/** @param {Model} model @param {Partial<Request>} values @returns {Model} */
export function change({ now, before }, values) {
  return { now: { ...now, ...values }, before: [...before, now].slice(-MAX_STEPS) };
}

/** Reverse the last change, but keep the songs heard since. @param {Model} model @returns {Model} */
export function undo({ now, before }) {
  const last = before.at(-1);
  if (!last) return { now, before };
  return { now: { ...last, heard: now.heard, length: now.length }, before: before.slice(0, -1) };
}

/** True if the request has a seed: a song, a sound, examples or words. @param {Request | undefined} request */
export function hasSeed(request) {
  if (!request) return false;
  const { seed, search, examples } = request;
  return Boolean(seed.song || seed.sound || search.words || Object.values(examples).includes(1));
}

/** Return the name of a queue, by which the player knows it. @param {string} library @param {Request} request */
export const nameOf = (library, { number }) => `${library}:${number}`;

/** @param {Model} model @param {number} step 1 or -1 */
export function makeCalmer(model, step) {
  const { calmer } = model.now;
  const more = calmer * step < 0 ? step : Math.max(-MAX_CALMER, Math.min(MAX_CALMER, calmer + step));
  return change(model, { calmer: more });
}

/** @param {Model} model */
export function surpriseMore(model) {
  return change(model, { surprise: Math.min(SURPRISES.length - 1, model.now.surprise + 1) });
}

/** Pin a song to its place, or unpin it. @param {Model} model @param {number} id @param {number} place */
export function togglePin(model, id, place) {
  const { pins } = model.now;
  const others = Object.fromEntries(Object.entries(pins).filter(([, other]) => other !== id));
  const isPinned = Object.keys(others).length < Object.keys(pins).length;
  return change(model, { pins: isPinned ? others : { ...others, [place]: id } });
}

/** Remove a song from the queue for good. @param {Model} model @param {number} id */
export function remove(model, id) {
  const pins = Object.fromEntries(Object.entries(model.now.pins).filter(([, other]) => other !== id));
  return change(model, { removed: [...model.now.removed, id], pins });
}

/** Return the thumbs that count: the last one on each song. @param {Request} request @returns {Record<string, 1 | -1>} */
export function judged({ thumbs }) {
  const last = Object.fromEntries(thumbs);
  return Object.fromEntries(Object.entries(last).flatMap(([id, value]) => (value ? [[id, value]] : [])));
}

/** Press a thumb, or release it if it was pressed. @param {Model} model @param {number} id @param {1 | -1} value */
export function pressThumb(model, id, value) {
  const { thumbs } = model.now;
  const isPressed = judged(model.now)[id] === value;
  return change(model, { thumbs: [...thumbs, [id, isPressed ? 0 : value]] });
}

/** Use songs as further examples, as many as there is room for. @param {Model} model @param {number[]} ids @param {1 | -1} sign */
export function addExamples(model, ids, sign) {
  const { examples } = model.now;
  const room = MAX_EXAMPLES - Object.keys(examples).length;
  return change(model, { examples: { ...examples, ...Object.fromEntries(sampleEvenly(ids, room).map((id) => [id, sign])) } });
}

/** Return at most `most` values, evenly spaced. @template T @param {T[]} values @param {number} most @returns {T[]} */
export function sampleEvenly(values, most) {
  if (values.length <= most) return values;
  return Array.from({ length: Math.max(0, most) }, (_, i) => values[Math.floor((i * values.length) / most)]);
}

/** Set an option of the search; a value of null removes it. @param {Model} model @param {string} name @param {any} value */
export function setOption(model, name, value) {
  const { [name]: _, ...others } = model.now.search;
  const isEmpty = value === null || value === "" || (Array.isArray(value) && !value.length);
  return change(model, { search: isEmpty ? others : { ...others, [name]: value } });
}

/**
 * Note that a song plays: it and the songs before it keep their places, and more songs are wanted if few are left.
 * This is no change that the listener could reverse.
 * @param {Model} model @param {any[]} items of the queue @param {number} place @returns {Model}
 */
export function noteHeard({ now, before }, items, place) {
  const heard = items.slice(0, place + 1).map(({ song, reason, similarity }) => ({
    song_id: song.id, reason: reason ?? "", similarity: similarity ?? null,
  }));
  const length = Math.max(items.length - place <= FEW ? now.length + MORE : now.length, heard.length);
  return { now: { ...now, heard, length }, before };
}

const OPEN = 1e9; // beyond every value that a song has

/**
 * Forget the first songs that were heard, because a request has a limited length. They stay out of the queue, and the
 * places of the others move up.
 * @param {Model} model @param {number} n @returns {Model}
 */
export function forgetFirst({ now, before }, n) {
  const gone = now.heard.slice(0, n).map(({ song_id: id }) => id);
  const pins = Object.entries(now.pins).flatMap(([place, id]) => (Number(place) < n ? [] : [[Number(place) - n, id]]));
  const changes = {
    heard: now.heard.slice(n), removed: [...now.removed, ...gone].slice(-MAX_REMOVED), pins: Object.fromEntries(pins),
    length: now.length - gone.length, opening: now.opening.filter((id) => !gone.includes(id)),
  };
  return { now: { ...now, ...changes }, before: before.map((old) => ({ ...old, removed: [...old.removed, ...gone].slice(-MAX_REMOVED), pins: {} })) };
}

/** Return the body of a request for the queue. @param {Request} request */
export function requestOf(request) {
  const { seed, examples, part, search, thumbs, surprise, number, ...others } = request;
  const closed = Object.entries(search).map(([name, value]) => {
    const isOpen = Array.isArray(value) && value.length === 2 && value.includes(null);
    return [name, isOpen ? [value[0] ?? -OPEN, value[1] ?? OPEN] : value];
  });
  const ids = (/** @type {number} */ sign) => Object.keys(examples).filter((id) => examples[id] === sign).map(Number);
  return {
    ...seed, ...others, surprise: SURPRISES[surprise], thumbs: Object.fromEntries(thumbs), seed: number,
    search: { ...Object.fromEntries(closed), like: ids(1), unlike: ids(-1), part },
  };
}

/** Return the places of songs that come from the listener, not from the server. @param {any[]} before @param {any[]} after */
export function whatChanged(before, after) {
  const old = new Map(before.map(({ song }, i) => [song.id, i + 1]));
  const nNew = after.filter(({ song }) => !old.has(song.id)).length;
  const moves = after.flatMap(({ song }, i) => {
    const from = old.get(song.id);
    return from === undefined ? [] : [{ gain: from - i - 1, from, to: i + 1, title: song.title }];
  });
  const best = moves.reduce((most, move) => (move.gain > most.gain ? move : most), { gain: 1, from: 0, to: 0, title: "" });
  const changes = [
    ...(nNew ? [`${nNew} new ${nNew === 1 ? "song" : "songs"} in the list`] : []),
    ...(best.title ? [`“${best.title}” rose from position ${best.from} to ${best.to}`] : []),
  ];
  if (changes.length) return `${changes.join("; ")}.`;
  const isSame = before.length === after.length && before.every(({ song }, i) => song.id === after[i].song.id);
  return isSame ? "The list did not change." : "The same songs, in a different order.";
}

/**
 * A condition that the listener can remove with a click.
 * @typedef {{key: string, label: string, drop: (model: Model) => Model}} Chip
 */

const clockOf = (/** @type {number} */ s) => `${Math.floor(s / 60)}:${String(Math.floor(s) % 60).padStart(2, "0")}`;
const times = (/** @type {number} */ n) => (n > 1 ? ` × ${n}` : "");

/** Return a range in words; an end that is null is open. @param {[number | null, number | null]} range */
export function describeRange([low, high]) {
  if (high === null) return `from ${low}`;
  return low === null ? `up to ${high}` : `${low}–${high}`;
}

/**
 * Return the conditions of a queue. `answer` has the words that the server understood, `titles` the songs' names, and
 * `options` those of /api/options.
 * @param {Request} now @param {any} answer @param {Map<number, string>} titles @param {any[]} options @returns {Chip[]}
 */
export function chipsOf(now, answer, titles, options) {
  /** @type {Chip[]} */
  const chips = [];
  const add = (/** @type {string} */ key, /** @type {string} */ label, /** @type {Chip["drop"]} */ drop) => chips.push({ key, label, drop });
  const nameOfSong = (/** @type {number | string} */ id) => titles.get(Number(id)) ?? `song ${id}`;
  for (const [id, sign] of Object.entries(now.examples)) {
    if (now.opening.includes(Number(id))) continue;
    add(`example ${id}`, `${sign > 0 ? "also like" : "less like"} ${nameOfSong(id)}`, (model) => {
      const { [id]: _, ...others } = model.now.examples;
      return change(model, { examples: others });
    });
  }
  if (now.part) add("part", `only ${clockOf(now.part[0])} to ${clockOf(now.part[1])}`, (model) => change(model, { part: null }));
  const words = answer?.words ?? [];
  for (const [i, { meaning }] of words.entries()) {
    const left = words.filter((_, /** @type {number} */ j) => j !== i).map((/** @type {any} */ { text }) => text).join(" ");
    add(`words ${meaning}`, meaning, (model) => setOption(model, "words", left));
  }
  for (const { name, label, kind, is_filter: isFilter } of options) {
    const value = now.search[name];
    if (value === undefined || name === "words" || !(isFilter || name === "by")) continue;
    const drop = (/** @type {Model} */ model) => setOption(model, name, null);
    if (kind === "range") add(name, `${label.toLowerCase()}: ${describeRange(value)}`, drop);
    else if (kind === "names") for (const one of value) add(`${name} ${one}`, name.startsWith("no_") ? `not ${one}` : one, (model) => setOption(model, name, model.now.search[name].filter((/** @type {string} */ other) => other !== one)));
    else add(name, name === "by" ? value : `${label.toLowerCase()}: ${value}`, drop);
  }
  if (now.calmer) add("calmer", (now.calmer > 0 ? "calmer" : "livelier") + times(Math.abs(now.calmer)), (model) => change(model, { calmer: 0 }));
  if (now.surprise) add("surprise", `surprising${times(now.surprise)}`, (model) => change(model, { surprise: 0 }));
  if (now.target !== null) add("target", `to ${nameOfSong(now.target)}`, (model) => change(model, { target: null }));
  for (const [id, value] of Object.entries(judged(now))) {
    if (value < 0) add(`thumb ${id}`, `without ${nameOfSong(id)}`, (model) => pressThumb(model, Number(id), -1));
  }
  return chips;
}
