import assert from "node:assert/strict";
import test from "node:test";

import * as states from "../../musicsim/web/listen/state.js";

const item = (id, more = {}) => ({ song: { id, title: `song ${id}` }, reason: `why ${id}`, similarity: null, ...more });
const begun = (more = {}) => states.begin({ song: 1 }, more);

test("a change can be undone, but songs stay heard and the queue stays long", () => {
  let model = states.makeCalmer(begun(), 1);
  model = states.noteHeard(model, [item(5), item(6)], 0);
  const { now, before } = states.undo(model);
  assert.equal(now.calmer, 0);
  assert.deepEqual(now.heard, [{ song_id: 5, reason: "why 5", similarity: null }]);
  assert.equal(now.length, model.now.length);
  assert.equal(before.length, 0);
});

test("only the last thirty changes can be undone", () => {
  let model = begun();
  for (let i = 0; i < 40; i += 1) model = states.remove(model, i);
  for (let i = 0; i < 40; i += 1) model = states.undo(model);
  assert.equal(model.now.removed.length, 10);
});

test("livelier after calmer begins at one step", () => {
  let model = begun();
  for (let i = 0; i < 6; i += 1) model = states.makeCalmer(model, 1);
  assert.equal(model.now.calmer, states.MAX_CALMER);
  assert.equal(states.makeCalmer(model, -1).now.calmer, -1);
});

test("a pin is set once and removed by the second press", () => {
  const pinned = states.togglePin(begun(), 7, 3);
  assert.deepEqual(pinned.now.pins, { 3: 7 });
  assert.deepEqual(states.togglePin(pinned, 7, 5).now.pins, {});
  assert.deepEqual(states.remove(pinned, 7).now.pins, {});
});

test("a thumb is released by the second press, and replaced by the other one", () => {
  const up = states.pressThumb(begun(), 4, 1);
  assert.deepEqual(states.judged(up.now), { 4: 1 });
  assert.deepEqual(states.judged(states.pressThumb(up, 4, 1).now), {});
  assert.deepEqual(states.judged(states.pressThumb(up, 4, -1).now), { 4: -1 });
});

test("the queue grows when few songs are left", () => {
  const items = Array.from({ length: 20 }, (_, i) => item(i + 2));
  assert.equal(states.noteHeard(begun(), items, 3).now.length, states.N_SONGS);
  assert.ok(states.noteHeard(begun(), items, 15).now.length > states.N_SONGS);
});

test("a request has the seed, the number and all conditions under the names of the interface", () => {
  let model = states.begin({ song: 9 }, { opening: [3], examples: { 3: 1, 8: -1 } }, { genre: ["jazz"], years: [1960, null] });
  model = states.pressThumb(states.surpriseMore(model), 2, -1);
  const body = states.requestOf(model.now);
  assert.equal(body.song, 9);
  assert.equal(body.seed, model.now.number);
  assert.deepEqual(body.search, { genre: ["jazz"], years: [1960, 1e9], like: [3], unlike: [8], part: null });
  assert.deepEqual(body.thumbs, { 2: -1 });
  assert.equal(body.surprise, states.SURPRISES[1]);
});

test("a new seed keeps filters, and its queue has another name", () => {
  const model = states.begin({ song: 9 }, {}, { genre: ["jazz"] });
  const other = states.begin({ song: 9 }, {}, model.now.search);
  assert.deepEqual(other.now.search, { genre: ["jazz"] });
  assert.notEqual(states.nameOf("library", model.now), states.nameOf("library", other.now));
});

test("each chip drops its own condition", () => {
  let model = states.begin({ song: 9 }, { target: 4, part: [61, 90], examples: { 5: 1 } }, { words: "slow piano", genre: ["jazz", "folk"] });
  model = states.makeCalmer(states.makeCalmer(model, 1), 1);
  const answer = { words: [{ text: "slow", meaning: "slow" }, { text: "piano", meaning: "tag piano" }] };
  const options = [{ name: "words", label: "Words", kind: "text", is_filter: true }, { name: "genre", label: "Genres", kind: "names", is_filter: true }];
  const chips = states.chipsOf(model.now, answer, new Map([[4, "Tides"], [5, "Rain"]]), options);
  const labels = chips.map(({ label }) => label);
  assert.deepEqual(labels, ["also like Rain", "only 1:01 to 1:30", "slow", "tag piano", "jazz", "folk", "calmer × 2", "to Tides"]);
  const without = (label) => chips.find((chip) => chip.label === label)?.drop(model).now;
  assert.deepEqual(without("slow")?.search.words, "piano");
  assert.deepEqual(without("jazz")?.search.genre, ["folk"]);
  assert.equal(without("calmer × 2")?.calmer, 0);
  assert.equal(without("to Tides")?.target, null);
  assert.deepEqual(without("also like Rain")?.examples, {});
});

test("what a thumb changed is one sentence", () => {
  const [one, two, three] = [item(1), item(2), item(3)];
  assert.equal(states.whatChanged([one, two, three], [three, one, two]), "“song 3” rose from position 3 to 1.");
  assert.equal(states.whatChanged([one, two], [one, two]), "The list did not change.");
  assert.equal(states.whatChanged([one, two], [two, one]), "The same songs, in a different order.");
  assert.equal(states.whatChanged([one], [one, two, three]), "2 new songs in the list.");
});

test("a sample keeps the order and spans all values", () => {
  assert.deepEqual(states.sampleEvenly([1, 2, 3, 4, 5, 6, 7, 8], 4), [1, 3, 5, 7]);
  assert.deepEqual(states.sampleEvenly([1, 2], 4), [1, 2]);
});

test("after many songs, the first ones are forgotten but do not come again", () => {
  const items = Array.from({ length: 40 }, (_, i) => item(i + 100));
  let model = states.noteHeard(states.togglePin(begun(), 130, 30), items, 9);
  const { length } = model.now;
  model = states.forgetFirst(model, 4);
  assert.deepEqual(model.now.removed, [100, 101, 102, 103]);
  assert.deepEqual(model.now.heard.map(({ song_id: id }) => id), [104, 105, 106, 107, 108, 109]);
  assert.deepEqual(model.now.pins, { 26: 130 });
  assert.equal(model.now.length, length - 4);
  assert.deepEqual(states.undo(model).now.removed, [100, 101, 102, 103]);
});
