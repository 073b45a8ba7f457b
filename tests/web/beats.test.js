import assert from "node:assert/strict";
import test from "node:test";

import { WARM_UP_S, beginOf, correct, describe, partnerOf, rateAfter, rateAt, shareOf, warmUpOf, withOffset } from "../../musicsim/web/player/beats.js";

const PLAN = { leave_s: 100, enter_s: 2, duration_s: 8, rates: [1, 1.05] };
const near = (actual, expected, within = 1e-9) => assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);
const isHeard = true;

test("beats coincide at all positions if the next song is where it should be", () => {
  near(partnerOf(PLAN, 100), 2);
  // 16 beats at 120 per minute take 8 s, and 8.4 s of the slower song
  for (const k of [0, 1, 7, 16]) near(partnerOf(PLAN, 100 + k * 0.5), 2 + k * 0.525);
});

test("the first song has reached the common tempo when the next one starts", () => {
  const plan = { ...PLAN, rates: [1.06, 1] };
  near(rateAt(plan, 0), 1);
  near(rateAt(plan, beginOf(plan)), 1);
  near(rateAt(plan, warmUpOf(plan)), 1.06);
  near(rateAt(plan, 104), 1.06);
  near(partnerOf(plan, warmUpOf(plan)), 0); // from its beginning
  const late = { ...plan, enter_s: 20 };
  near((late.leave_s - warmUpOf(late)) / 1.06, WARM_UP_S);
});

test("the next song returns to its own speed after the fade", () => {
  near(rateAfter(PLAN, 0), 1.05);
  assert.ok(rateAfter(PLAN, 3) < 1.05 && rateAfter(PLAN, 3) > 1);
  near(rateAfter(PLAN, 60), 1);
});

test("a fade that begins late ends at the same position", () => {
  near(shareOf(PLAN, 100, 104), 0.5);
  near(shareOf(PLAN, 102, 105), 0.5);
  for (const from of [100, 102, 108, 200]) near(shareOf(PLAN, from, 300), 1);
});

/** Return offsets after some time of corrections, as measured every 40 ms with some noise. */
function follow(offset, { noise = 0, isHeard: heard = false, seconds = 1.2 } = {}) {
  let offsets = [];
  let [now, answer] = [offset, { isAligned: false, change: 0 }];
  for (let step = 0; step < seconds / 0.04; step += 1) {
    offsets = withOffset(offsets, now + noise * Math.sin(7 * step));
    answer = correct(offsets, { isHeard: heard });
    if (answer.jump) [now, offsets] = [now + answer.jump - 0.06, []]; // a jump takes 60 ms
    else now += answer.change * 0.04;
  }
  return [now, answer.isAligned];
}

test("a song that starts too early or too late is aligned before the fade", () => {
  for (const offset of [-2, -0.12, -0.05, -0.01, 0, 0.03, 0.14, 0.5]) {
    const [left, isAligned] = follow(offset, { noise: 0.002 });
    near(left, 0, 0.006);
    assert.ok(isAligned, `${offset}`);
  }
});

test("corrections are inaudible once the song is heard", () => {
  const all = (offset) => correct(Array(5).fill(offset), { isHeard });
  for (const offset of [-3, -0.1, -0.02, 0.02, 0.1, 3]) {
    assert.equal(all(offset).jump, 0);
    assert.ok(Math.abs(all(offset).change) <= 0.006);
  }
  assert.equal(all(0.005).change, 0);
  assert.ok(all(0.02).change < 0 && all(-0.02).change > 0);
});

test("nothing is decided from a few offsets, or from clocks that are too coarse", () => {
  assert.deepEqual(correct([0, 0, 0, 0], { isHeard: false }), { jump: 0, change: 0, isAligned: false });
  assert.equal(correct([0, 0.03, 0, -0.03, 0], { isHeard: false }).isAligned, false);
  assert.equal(correct([0, 0.003, 0, -0.003, 0], { isHeard: false }).isAligned, true);
});

test("tempos and keys are stated with the kind of fade", () => {
  const plan = { tempos: [123.6, 126], keys: ["C major", ""], reason: "" };
  assert.equal(describe(plan), "124 → 126 beats/min, C major → ?, on the beat");
  const reason = "a song is too short for 4 beats";
  assert.equal(describe({ tempos: [null, null], keys: ["", ""], reason }), `crossfade: ${reason}`);
});
