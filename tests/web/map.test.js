import assert from "node:assert/strict";
import test from "node:test";

import { coveredRows } from "../../musicsim/web/map/covers.js";
import { FULL, distanceAhead, limited, onScreen, toPlace, toScreen, viewBetween, viewOfAll, viewOfRows, zoomed } from "../../musicsim/web/map/geometry.js";
import { hiddenEntries, nFitting, scaleTexts } from "../../musicsim/web/map/legend.js";
import { blurred, hideOthers, inOrderOf, lighten } from "../../musicsim/web/map/points.js";
import { findByLetters, moveInTree, typicalSong, visibleItems } from "../../musicsim/web/map/tree.js";
import { followsSong, isOneLonger, walkLines } from "../../musicsim/web/map/walk.js";

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

test("a group's view contains most of its songs, and far songs do not matter", () => {
  const places = { x: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((k) => (k * FULL) / 20), y: new Array(10).fill(FULL / 2) };
  const rows = [...places.x.keys()];
  const view = viewOfRows(places, rows);
  for (const row of rows) {
    const [px] = onScreen(places, row, view, 800, 400);
    assert.ok(px > 0 && px < 800);
  }
  assert.ok(view.zoom > 1);
  const far = { x: [...places.x, ...places.x, FULL], y: new Array(21).fill(FULL / 2) };
  assert.ok(Math.abs(viewOfRows(far, [...far.x.keys()]).x - view.x) < 0.05);
  assert.equal(viewOfRows(places, [3]).zoom, 6);
  assert.deepEqual(viewOfRows({ x: [0, FULL], y: [0, FULL] }, [0, 1]), viewOfAll(null));
});

test("a flight begins and ends at its views, and zooms by equal factors", () => {
  const to = { x: 0.8, y: 0.1, zoom: 10 };
  for (const [share, view] of [[0, VIEW], [1, to]]) isNear(Object.values(viewBetween(VIEW, to, share)), Object.values(view));
  assert.ok(Math.abs(viewBetween(VIEW, to, 0.5).zoom - 5) < 1e-9);
  isNear(Object.values(viewBetween(VIEW, { ...VIEW, x: 0.5 }, 0.5)), [0.4, 0.6, 2.5]);
});

test("songs outside a mask get a color of their own, which is not shown", () => {
  const colors = { entries: [{ name: "a" }, { name: "b" }], codes: Uint8Array.of(0, 1, 1) };
  assert.equal(hideOthers(colors, null, null).colors, colors);
  const { colors: made, isolated } = hideOthers(colors, null, Uint8Array.of(1, 0, 1));
  assert.deepEqual([...made.codes], [0, 2, 1]);
  assert.deepEqual([...isolated], [0, 1]);
  assert.deepEqual([...hideOthers(colors, new Set([1]), Uint8Array.of(1, 0, 1)).isolated], [1]);
});

const TREE = [
  { name: "All songs", level: 1, isOpen: null },
  { name: "calm", level: 1, isOpen: true },
  { name: "jazz", level: 2, isOpen: null },
  { name: "Classical", level: 2, isOpen: null },
  { name: "fast", level: 1, isOpen: false },
  { name: "metal", level: 2, isOpen: null },
];

test("arrow keys move among the visible items, and open and close them", () => {
  assert.deepEqual(visibleItems(TREE), [0, 1, 2, 3, 4]);
  const at = (from, key) => moveInTree(TREE, from, key);
  assert.deepEqual([at(0, "ArrowDown"), at(3, "ArrowDown"), at(4, "ArrowDown")], [{ at: 1 }, { at: 4 }, { at: 4 }]);
  assert.deepEqual([at(0, "ArrowUp"), at(4, "ArrowUp")], [{ at: 0 }, { at: 3 }]);
  assert.deepEqual([at(2, "Home"), at(2, "End")], [{ at: 0 }, { at: 4 }]);
  assert.deepEqual([at(1, "ArrowRight"), at(2, "ArrowRight"), at(4, "ArrowRight")], [{ at: 2 }, { at: 2 }, { at: 4, isOpen: true }]);
  assert.deepEqual([at(1, "ArrowLeft"), at(3, "ArrowLeft"), at(4, "ArrowLeft")], [{ at: 1, isOpen: false }, { at: 1 }, { at: 4 }]);
  assert.equal(at(0, "x"), null);
});

test("letters select the next item that begins with them", () => {
  assert.equal(findByLetters(TREE, 0, "c"), 1);
  assert.equal(findByLetters(TREE, 1, "c"), 3);
  assert.equal(findByLetters(TREE, 1, "cc"), 3, "the same letter again");
  assert.equal(findByLetters(TREE, 3, "cl"), 3, "more letters of the same word");
  assert.equal(findByLetters(TREE, 0, "m"), null, "metal is inside a closed item");
});

test("typical songs take turns, without disliked ones", () => {
  const isDisliked = (id) => id === 8;
  assert.deepEqual([0, 1, 2].map((n) => typicalSong([7, 8, 9], n, isDisliked)), [7, 9, 7]);
  assert.equal(typicalSong([8], 0, isDisliked), null);
});

test("covers replace points that are few and far apart, at high zoom", () => {
  const places = { x: [0.2, 0.205, 0.4, 0.1, 0.3].map((x) => x * FULL), y: [0.6, 0.6, 0.6, 0.7, 0.5].map((y) => y * FULL) };
  const rows = [0, 1, 2, 3, 4];
  assert.deepEqual(coveredRows(places, rows, VIEW, SIZE, 40), [0, 2, 3, 4], "the second one would overlap the first");
  assert.deepEqual(coveredRows(places, rows, { ...VIEW, zoom: 1.9 }, SIZE, 40), []);
  assert.deepEqual(coveredRows(places, rows, VIEW, SIZE, 400), [], "too few have room");
  const many = Array.from({ length: 61 }, (_, i) => i);
  const apart = { x: many.map((i) => (i * FULL) / 61), y: many.map((i) => (i * FULL) / 61) };
  assert.deepEqual(coveredRows(apart, many, { x: 0.5, y: 0.5, zoom: 2 }, { width: 9000, height: 9000 }, 40), []);
  assert.equal(coveredRows(apart, many.slice(1), { x: 0.5, y: 0.5, zoom: 2 }, { width: 9000, height: 9000 }, 40).length, 60);
});

test("the line of the queue is solid up to the song that plays, and grows while songs pass", () => {
  const [a, b, c] = [[0, 0], [10, 0], [10, 10]];
  assert.deepEqual(walkLines([a, b], [c], 1), { solid: [a, b], dashed: [b, c] });
  assert.deepEqual(walkLines([a, b], [c], 0.3), { solid: [a, [3, 0]], dashed: [[3, 0], b, c] });
  assert.deepEqual(walkLines([a], [b], 0.3), { solid: [a], dashed: [a, b] });
  assert.deepEqual(walkLines([], [b], 1), { solid: [], dashed: [] });
  assert.ok(isOneLonger([1, 2], [1, 2, 3]));
  for (const [before, after] of [[[], [1]], [[1, 2], [1, 3, 2]], [[1], [1]], [[1], [1, 2, 3]]]) assert.ok(!isOneLonger(before, after));
});

test("the map follows the song that plays, unless the listener looks elsewhere", () => {
  const [soon, late] = [1000, 60_000];
  assert.ok(!followsSong({ isInView: true, wasInView: true, sinceMoved: late }));
  assert.ok(followsSong({ isInView: false, wasInView: true, sinceMoved: soon }));
  assert.ok(followsSong({ isInView: false, wasInView: false, sinceMoved: late }));
  assert.ok(!followsSong({ isInView: false, wasInView: false, sinceMoved: soon }));
});
