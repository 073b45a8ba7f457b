import assert from "node:assert/strict";
import test from "node:test";

import { actOfKey } from "../../musicsim/web/find/keys.js";

const box = (changes = {}) => ({ isOpen: true, text: "piano", nLines: 3, marked: 0, ...changes });

test("arrows mark the next line, and go around", () => {
  assert.deepEqual(actOfKey("ArrowDown", box()), { act: "mark", line: 1 });
  assert.deepEqual(actOfKey("ArrowUp", box()), { act: "mark", line: 2 });
  assert.deepEqual(actOfKey("ArrowDown", box({ marked: 2 })), { act: "mark", line: 0 });
});

test("an arrow opens a closed list, and does nothing in an empty one", () => {
  assert.deepEqual(actOfKey("ArrowDown", box({ isOpen: false })), { act: "show" });
  assert.deepEqual(actOfKey("ArrowDown", box({ nLines: 0 })), { act: "stay" });
});

test("Enter chooses only if there is text", () => {
  assert.deepEqual(actOfKey("Enter", box()), { act: "enter" });
  assert.equal(actOfKey("Enter", box({ text: " " })), null);
});

test("Escape closes the list, then empties the box, then leaves the key to others", () => {
  assert.deepEqual(actOfKey("Escape", box()), { act: "hide" });
  assert.deepEqual(actOfKey("Escape", box({ isOpen: false })), { act: "empty" });
  assert.equal(actOfKey("Escape", box({ isOpen: false, text: "" })), null);
});
