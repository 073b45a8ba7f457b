import assert from "node:assert/strict";
import test from "node:test";

import { Calm, CALLBACKS_MS, NOT_EARLIER_MS, STILL_MS } from "../../musicsim/web/watch/calm.js";
import { Watching } from "../../musicsim/web/watch/watching.js";

test("a tab in which nothing was done is calm", () => {
  assert.ok(new Calm().isAt(0));
});

test("after a click, a page waits for its callbacks", () => {
  const calm = new Calm();
  calm.touch(1000);
  assert.ok(!calm.isAt(1000 + STILL_MS), "no run has come yet");
  assert.ok(!calm.isAt(1000 + CALLBACKS_MS - 1));
  assert.ok(calm.isAt(1000 + CALLBACKS_MS), "the click may have caused no run");
});

test("data that a run draws after a click ends the wait", () => {
  const calm = new Calm();
  calm.touch(1000);
  calm.draw(1000 + NOT_EARLIER_MS - 1);
  assert.ok(!calm.isAt(1000 + NOT_EARLIER_MS), "it may be from a run before the click");
  calm.draw(1000 + NOT_EARLIER_MS);
  assert.ok(calm.isAt(1000 + NOT_EARLIER_MS));
  calm.touch(2000);
  assert.ok(!calm.isAt(2000 + STILL_MS), "the next click waits for its own run");
});

test("a pressed button is not calm", () => {
  const calm = new Calm();
  calm.isPressed = true;
  assert.ok(!calm.isAt(1e6));
});

const DATA = { state: "a", parts: [], address: "view", every: 1, isFramed: false, runs: "runs/x", run: 0 };

function makeWorld(changes = {}) {
  const world = { state: "a", time: 0, isShown: true, isCalm: true, isRunning: false, fails: false, asked: [], reruns: [], shown: [], ...changes };
  const ask = async (address) => {
    world.asked.push(address);
    if (world.fails) throw new Error("away");
    world.meanwhile?.();
    return address === "view" ? { state: world.state, parts: [] } : { is_running: world.isRunning };
  };
  const outside = { ask, now: () => world.time, isShown: () => world.isShown, isCalm: () => world.isCalm };
  const watching = new Watching(outside, (view) => world.shown.push(view.state), (state) => world.reruns.push(state));
  watching.receive(DATA);
  return [world, watching];
}

test("the same state is drawn, and causes no run", async () => {
  const [world, watching] = makeWorld();
  assert.equal(await watching.step(), 1000);
  assert.deepEqual([world.shown, world.reruns, world.asked], [["a", "a"], [], ["view"]]);
});

test("a new state causes one run", async () => {
  const [world, watching] = makeWorld({ state: "b" });
  await watching.step();
  await watching.step();
  assert.deepEqual(world.reruns, ["b"]);
  world.time = 60_000;
  await watching.step();
  assert.deepEqual(world.reruns, ["b", "b"], "the run was lost");
  watching.receive({ ...DATA, state: "b" });
  world.time = 120_000;
  await watching.step();
  assert.equal(world.reruns.length, 2, "the page shows it");
});

for (const [name, changes] of Object.entries({ user: { isCalm: false }, run: { isRunning: true } })) {
  test(`a run waits for the ${name}`, async () => {
    const [world, watching] = makeWorld({ state: "b", ...changes });
    assert.ok((await watching.step()) < 1000);
    assert.deepEqual(world.reruns, []);
    Object.assign(world, { isCalm: true, isRunning: false });
    await watching.step();
    assert.deepEqual(world.reruns, ["b"]);
  });
}

test("a click between the questions and the run stops the run", async () => {
  const [world, watching] = makeWorld({ state: "b" });
  world.meanwhile = () => { world.isCalm = !world.asked.includes("runs/x"); };
  await watching.step();
  assert.deepEqual([world.asked, world.reruns], [["view", "runs/x"], []]);
});

test("an answer that a run has overtaken is not drawn", async () => {
  const [world, watching] = makeWorld({ state: "b" });
  world.meanwhile = () => watching.receive({ ...DATA, state: "c" });
  await watching.step();
  assert.deepEqual([world.shown, world.reruns], [["a", "c"], []]);
});

test("a page that is not seen asks nothing", async () => {
  const [world, watching] = makeWorld({ isShown: false });
  await watching.step();
  assert.deepEqual(world.asked, []);
});

test("after errors, the pauses grow up to half a minute, and end with an answer", async () => {
  const [world, watching] = makeWorld({ fails: true });
  const pauses = [];
  for (let i = 0; i < 7; i += 1) pauses.push(await watching.step());
  assert.deepEqual(pauses, [2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  world.fails = false;
  assert.equal(await watching.step(), 1000);
});
