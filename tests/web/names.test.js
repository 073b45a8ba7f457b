import assert from "node:assert/strict";
import test from "node:test";

import { matching } from "../../musicsim/web/find/names.js";

test("names that begin with the text come first, whatever their case", () => {
  assert.deepEqual(matching(["a Noise", "noise b", "other", "NOISE a"], " noise "), ["noise b", "NOISE a", "a Noise"]);
});

test("at most twenty names match, and an empty text matches all", () => {
  assert.equal(matching(Array.from({ length: 50 }, (_, n) => `name ${n}`), "name").length, 20);
  assert.deepEqual(matching(["b", "a"], ""), ["b", "a"]);
});

test("entries are found by their titles", () => {
  const entries = [{ title: "Evening", value: "1" }, { title: "Morning", value: "2" }];
  assert.deepEqual(matching(entries, "morn", ({ title }) => title), [entries[1]]);
});
