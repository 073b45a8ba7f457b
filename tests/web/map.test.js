import assert from "node:assert/strict";
import test from "node:test";

import { FULL, distanceAhead, limited, onScreen, toPlace, toScreen, viewOfAll, zoomed } from "../../musicsim/web/map/geometry.js";
import { hiddenEntries, nFitting, scaleTexts } from "../../musicsim/web/map/legend.js";
import { blurred, inOrderOf, lighten } from "../../musicsim/web/map/points.js";

const SIZE = { width: 800, height: 400 };
const VIEW = { x: 0.3, y: 0.6, zoom: 2.5 };

function isNear(actual, expected) {
  for (const [i, value] of actual.entries()) assert.ok(Math.abs(value - expected[i]) < 1e-9, `${actual}`);
}

test("the whole map fills the stage, with its first row at the bottom", () => {
  const whole = viewOfAll(null);
  assert.deepEqual(toScreen([0, 0], whole, 800, 400), [0, 400]);
  assert.deepEqual(toScreen([1, 1], whole, 800, 400), [800, 0]);
  assert.deepEqual(onScreen({ x: [FULL], y: [0] }, 0, whole, 800, 400), [800, 400]);
});

test("a pixel's place is drawn at that pixel", () => {
  isNear(toScreen(toPlace(123, 45, VIEW, SIZE), VIEW, 800, 400), [123, 45]);
});

test("zooming keeps the place under the pointer", () => {
  for (const by of [0.5, 3, 1000]) {
    const view = zoomed(VIEW, by, [700, 30], SIZE);
    isNear(toPlace(700, 30, view, SIZE), toPlace(700, 30, VIEW, SIZE));
  }
  assert.equal(zoomed(VIEW, 1000, [0, 0], SIZE).zoom, 60);
});

test("the map stays near", () => {
  assert.deepEqual(limited({ x: 99, y: -99, zoom: 0 }), { x: 10, y: -9, zoom: 0.1 });
});

test("the view of all songs shows a query outside the map", () => {
  const view = viewOfAll([1.5, -0.2]);
  const [px, py] = toScreen([1.5, -0.2], view, 800, 400);
  assert.ok(px > 0 && px < 800 && py > 0 && py < 400);
  assert.deepEqual(viewOfAll([0.2, 0.2]), viewOfAll(null));
});

test("an arrow key goes ahead rather than aside", () => {
  const right = [1, 0];
  assert.equal(distanceAhead([0, 0], [10, 0], right), 10);
  assert.equal(distanceAhead([0, 0], [10, 4], right), 18);
  assert.equal(distanceAhead([0, 0], [10, 11], right), Infinity);
  assert.equal(distanceAhead([0, 0], [-10, 0], right), Infinity);
  assert.equal(distanceAhead([0, 0], [0, 7], [0, 1]), 7);
});

test("dark colors become lighter on a dark page, and light ones stay", () => {
  assert.equal(lighten("#000000"), "#666666");
  assert.equal(lighten("#ffcc00"), "#ffcc00");
});

test("blurring keeps the sum of cells away from the edges, and is symmetric", () => {
  const cells = new Float32Array(21 * 21);
  cells[10 * 21 + 10] = 1;
  const soft = blurred(cells, 21, 1);
  assert.ok(Math.abs(soft.reduce((sum, value) => sum + value, 0) - 1) < 1e-5);
  assert.ok(Math.abs(soft[10 * 21 + 8] - soft[12 * 21 + 10]) < 1e-7);
  assert.ok(soft[10 * 21 + 10] > soft[10 * 21 + 9]);
});

test("points of the same songs move, in the order of the old map", () => {
  const places = (ids, x) => ({ n: ids.length, order: "", tag: null, ids: Uint32Array.from(ids), x: Uint16Array.from(x), y: Uint16Array.from(x) });
  const colors = { codes: Uint8Array.from([0, 1, 2]) };
  const [moved, colored] = inOrderOf(places([7, 8, 9], [0, 0, 0]), places([9, 7, 8], [1, 2, 3]), colors);
  assert.deepEqual([...moved.ids], [7, 8, 9]);
  assert.deepEqual([...moved.x], [2, 3, 1]);
  assert.deepEqual([...colored.codes], [1, 2, 0]);
  assert.equal(inOrderOf(places([7, 8], [0, 0]), places([9, 7, 8], [1, 2, 3]), colors), null);
  assert.equal(inOrderOf(places([6, 7, 8], [0, 0, 0]), places([9, 7, 8], [1, 2, 3]), colors), null);
});

test("a legend's lines are filled from left to right", () => {
  assert.equal(nFitting([], 100, 5), 0);
  assert.equal(nFitting([45, 50, 45, 50], 100, 5), 4);
  assert.equal(nFitting([45, 50, 45, 51], 100, 5), 3, "the last one begins a third line");
  assert.equal(nFitting([60, 60, 10, 10], 100, 5), 4, "a line is not filled by an entry that is too wide for it");
  assert.equal(nFitting([500, 500, 1], 100, 5), 2, "a wide entry has a line of its own");
});

test("a legend hides entries only if there is no room, and never chosen ones", () => {
  const look = { room: 100, gap: 0, button: 40, isChosen: () => false };
  assert.deepEqual(hiddenEntries([50, 50, 50, 50], look), [], "the button needs no room if all fit");
  assert.deepEqual(hiddenEntries([50, 50, 50, 50, 50], look), [2, 3, 4]);
  assert.deepEqual(hiddenEntries([50, 50, 50, 50, 50], { ...look, isChosen: (i) => i === 3 }), [1, 2, 4], "it has the place of another one");
  assert.deepEqual(hiddenEntries([50, 50, 50], { ...look, room: 10 }), [2], "a narrow page");
});

test("more room never hides more entries", () => {
  const widths = Array.from({ length: 25 }, (_, i) => 30 + ((i * 37) % 90));
  let before = Infinity;
  for (let room = 60; room < 1500; room += 7) {
    const { length } = hiddenEntries(widths, { room, gap: 2, button: 60, isChosen: () => false });
    assert.ok(length <= before, `${room}`);
    before = length;
  }
  assert.equal(before, 0);
});

test("a scale says what it is, in words if there are any", () => {
  const energy = { low: 70.2, high: 103.8, unit: "dB/s", low_word: "calm", high_word: "lively" };
  assert.deepEqual(scaleTexts("energy", energy), { name: "energy:", ends: ["calm", "lively"], range: "70 to 104 dB/s" });
  const year = { low: 1959, high: 2021, unit: "", low_word: "", high_word: "" };
  assert.deepEqual(scaleTexts("year", year), { name: "year:", ends: ["1959", "2021"], range: "1959 to 2021" });
});
