import assert from "node:assert/strict";
import test from "node:test";

import { barsOf, inkOn, spread, wavesOf } from "../../musicsim/web/why/figures.js";
import {
  describeCommon,
  describeDifferences,
  describeExamples,
  describeList,
  describePoints,
  describeSimilarity,
  describeUnlike,
  rankExamples,
} from "../../musicsim/web/why/words.js";

const part = (share, before = null) => ({ words: "loud", share, share_before: before });
const song = (title, more = {}) => ({
  id: 1, title, by: "", duration_s: 60, starts_s: 0, heard_s: 60, n_listeners: 0, peaks: [1], curve: [], passages: [], ...more,
});

test("bars fill the width, from zero to the largest share", () => {
  const [first, second] = barsOf([part(0.4), part(0.1)]);
  assert.deepEqual(first, { words: "loud", before: null, now: { left: 0, width: 100, isNegative: false, points: "40.0" } });
  assert.deepEqual(second.now, { left: 0, width: 25, isNegative: false, points: "10.0" });
});

test("a negative bar ends where the others start", () => {
  const bars = barsOf([part(0.3), part(-0.1)]).map(({ now }) => now);
  assert.deepEqual(bars.map(({ left }) => left), [25, 0]);
  assert.deepEqual(bars.map(({ width }) => width), [75, 25]);
  assert.deepEqual(bars.map(({ points }) => points), ["30.0", "−10.0"]);
  assert.deepEqual(bars.map(({ isNegative }) => isNegative), [false, true]);
});

test("bars before and after learning have one scale", () => {
  const [{ before, now }] = barsOf([part(0.1, 0.2)]);
  assert.deepEqual([before?.width, now.width], [100, 50]);
});

test("a share that rounds to zero has no sign, and shares of zero have no width", () => {
  assert.equal(barsOf([part(-0.0001), part(0.5)])[0].now.points, "0.0");
  assert.equal(barsOf([part(0)])[0].now.width, 0);
  assert.deepEqual(barsOf([]), []);
});

test("buttons stay at their passages if they fit", () => {
  assert.deepEqual(spread([50, 150], 200, 28), [50, 150]);
});

test("buttons neither overlap nor leave the waveform", () => {
  for (const wanted of [[0, 0, 0], [200, 199, 198], [0, 100, 101, 200], [10, 5, 20, 15]]) {
    const places = spread(wanted, 200, 28);
    const sorted = [...places].sort((a, b) => a - b);
    assert.ok(sorted[0] >= 14 && (sorted.at(-1) ?? 0) <= 186, `${places}`);
    for (let i = 1; i < sorted.length; i += 1) assert.ok(sorted[i] - sorted[i - 1] >= 28 - 1e-9, `${places}`);
  }
});

test("letters are light on dark colors and dark on light ones", () => {
  assert.equal(inkOn("#0072b2"), "#ffffff");
  assert.equal(inkOn("#e69f00"), "#1f2a2e");
});

test("the waveforms have letters, addresses and curves of one scale", () => {
  const passages = [{ start_s: 1, end_s: 2, sound: 1 }];
  const songs = [song("a", { curve: [0.1, -0.1], passages }), song("b", { id: null, curve: [0.2] })];
  const answer = { shared_sounds: ["dark", "loud"], sound_colors: ["#000000", "#ffffff"], songs };
  const { slots, sides } = wavesOf(answer, (id) => (id === null ? "sound" : `songs/${id}`));
  assert.deepEqual(slots, [
    { letter: "A", color: "#000000", words: "dark" },
    { letter: "B", color: "#ffffff", words: "loud" },
  ]);
  assert.deepEqual(sides.map(({ curve }) => curve), [[0.5, 0], [1]]);
  assert.deepEqual(sides.map(({ url }) => url), ["songs/1", "sound"]);
  assert.deepEqual(sides[0].passages, [{ start_s: 1, end_s: 2, slot: 1 }]);
});

test("the similarity before learning is told if there was one", () => {
  assert.equal(describeSimilarity({ similarity: 0.834, similarity_before: null }).join(""), "Similarity: 0.83 out of 1.");
  const learned = describeSimilarity({ similarity: 0.8, similarity_before: 0.5 });
  assert.equal(learned.join(""), "Similarity: 0.80 out of 1; before learning it was 0.50.");
  assert.equal(describePoints({ similarity: 0.834 }), "Points out of 100; they add up to 83.");
});

test("a list with another similarity is explained, a factor first", () => {
  assert.equal(describeList({ uses_regions: false }, ""), "");
  assert.match(describeList({ uses_regions: true }, ""), /mean of all regions/);
  assert.match(describeList({ uses_regions: true }, "rhythm"), /similarity in rhythm/);
});

test("a difference names the song that has more of it", () => {
  const songs = [song("One"), song("Two")];
  const difference = (more) => ({ words: "loud", share: 0.126, share_before: null, more_in_place: null, ...more });
  const told = (...differences) => describeDifferences({ differences, songs });
  assert.equal(told(), "");
  assert.equal(told(difference({})), "Largest differences (share of the squared distance): loud (13%).");
  assert.match(told(difference({ more_in_place: 1, share_before: 0.2 })), / loud \(13%; 20% before learning; more in “Two”\)\.$/);
});

test("tags, listeners and guesses in common", () => {
  const answer = { guessed_tags: [], tags: [], songs: [song("One"), song("Two")], n_listeners: 0, listeners_jaccard: null };
  assert.deepEqual(describeCommon(answer), ["Tags: none.", "Listeners: no listening data."]);
  const oneSided = { ...answer, songs: [song("One", { n_listeners: 3 }), song("Two")] };
  assert.equal(describeCommon(oneSided).at(-1), "Listeners: no listening data for one song.");
  const heard = { ...answer, tags: ["a", "b"], guessed_tags: ["piano"], n_listeners: 1, listeners_jaccard: 0.25 };
  assert.deepEqual(describeCommon(heard), [
    "A learned ear recognizes in both: piano.",
    "Tags: a, b.",
    "Listeners: 1 person has played both, 25% of those who played either.",
  ]);
  assert.match(describeCommon({ ...heard, n_listeners: 1200 }).at(-1) ?? "", /^Listeners: 1,200 people have played both/);
});

test("the most similar of several examples comes first", () => {
  const like = [0.2, 0.9, 0.3, 0.4, 0.5, 0.6].map((similarity, i) => ({ title: `t${i}`, similarity }));
  const examples = { similarity: 0.75, like, unlike: [] };
  assert.deepEqual(rankExamples(examples).map(({ place }) => place), [1, 5, 4, 3, 2, 0]);
  const told = describeExamples(examples);
  assert.equal(told[1], "0.75");
  assert.match(told[2], /most: 0\.90 to “t1”, .* and others\.$/);
  assert.ok(!told[2].includes("t0"));
  assert.equal(describeUnlike(examples), "");
  const lowered = describeUnlike({ unlike: [{ title: "x", similarity: 0.3 }, { title: "y", similarity: 0.25 }] });
  assert.match(lowered, /resembles “x” \(0\.30\), “y” \(0\.25\), which you marked/);
});
