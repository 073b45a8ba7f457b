import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

const NAME = "musicsim.tab";
let followReload;
let items;
let asked;
let nPages = 0;

/** Load the page again, with what the tab has stored. */
async function load(type) {
  mock.method(performance, "getEntriesByType", () => [{ type }]);
  nPages += 1;
  ({ followReload } = await import(`../../musicsim/web/reload.js?page=${nPages}`));
}

const run = (tab, restored = "") => {
  const before = followReload({ tab, restored });
  if (before) asked.push(before);
};
const kept = () => JSON.parse(items.get(NAME));

beforeEach(() => {
  items = new Map();
  asked = [];
  const sessionStorage = { getItem: (key) => items.get(key) ?? null, setItem: (key, value) => items.set(key, value) };
  globalThis.window = /** @type {any} */ ({ sessionStorage });
});

afterEach(() => mock.restoreAll());

test("a new tab stores its key and asks for nothing", async () => {
  await load("navigate");
  run("a");
  run("a");
  assert.deepEqual([kept(), asked], ["a", []]);
});

test("a reloaded page asks until it has the values, and stores its own key only then", async () => {
  await load("navigate");
  run("a");
  await load("reload");
  run("b");
  assert.deepEqual([kept(), asked], ["a", [{ tab: "a", isReload: true }]]);
  await load("reload"); // before the server has answered
  run("c");
  assert.deepEqual(asked.at(-1), { tab: "a", isReload: true });
  run("c", "a");
  assert.deepEqual([kept(), asked.length], ["c", 2]);
});

test("a followed link is no reload", async () => {
  await load("navigate");
  run("a");
  await load("navigate");
  run("b");
  assert.deepEqual(asked, [{ tab: "a", isReload: false }]);
});

test("an open page whose session ended gets all values back", async () => {
  await load("navigate");
  run("a");
  run("b");
  assert.deepEqual(asked, [{ tab: "a", isReload: true }]);
});
