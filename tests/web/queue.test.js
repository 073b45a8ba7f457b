import assert from "node:assert/strict";
import test from "node:test";

import { describe, follow, move, nextPlayable, order, recentSongs, remove } from "../../musicsim/web/player/queue.js";

const track = (uid, song = uid) => ({ uid, song_id: song });
const queue = (uids, index) => ({ tracks: uids.map((uid) => track(uid)), index });
const seen = ({ tracks, index }) => [tracks.map(({ uid }) => uid), index];

test("the current song stays current if another one is removed", () => {
  assert.deepEqual(seen(remove(queue([1, 2, 3], 1), 1)), [[2, 3], 0]);
  assert.deepEqual(seen(remove(queue([1, 2, 3], 1), 3)), [[1, 2], 1]);
});

test("the song in its place becomes current if the current one is removed", () => {
  assert.deepEqual(seen(remove(queue([1, 2, 3], 1), 2)), [[1, 3], 1]);
  assert.deepEqual(seen(remove(queue([1, 2], 1), 2)), [[1], 0]);
  assert.deepEqual(seen(remove(queue([1], 0), 1)), [[], -1]);
});

test("an unknown song changes nothing", () => {
  assert.deepEqual(seen(remove(queue([1, 2], 0), 7)), [[1, 2], 0]);
  assert.deepEqual(seen(move(queue([1, 2], 0), 7, 1)), [[1, 2], 0]);
});

test("a song moves within the queue, and the current one stays current", () => {
  assert.deepEqual(seen(move(queue([1, 2, 3], 0), 3, -1)), [[1, 3, 2], 0]);
  assert.deepEqual(seen(move(queue([1, 2, 3], 0), 1, 1)), [[2, 1, 3], 1]);
  assert.deepEqual(seen(move(queue([1, 2, 3], 0), 1, -1)), [[1, 2, 3], 0]);
});

test("songs after the current one get a new order, and those that it lacks come last", () => {
  assert.deepEqual(seen(order(queue([1, 2, 3, 4, 5], 1), [5, 3])), [[1, 2, 5, 3, 4], 1]);
  assert.deepEqual(seen(order(queue([1, 2, 3], 0), [9, 1, 2, 3])), [[1, 2, 3], 0]);
  const twice = { tracks: [track(1, 7), track(2, 8), track(3, 9), track(4, 8)], index: 0 };
  assert.deepEqual(seen(order(twice, [8, 8, 9])), [[1, 2, 4, 3], 0]);
});

test("a new queue keeps the track that is playing", () => {
  const followed = follow(queue([1, 2], 1), [track(8, 5), track(9, 2)], 0);
  assert.deepEqual(seen(followed), [[8, 2], 1]);
});

test("a track that the new queue lacks comes after the songs before it", () => {
  assert.deepEqual(seen(follow(queue([1], 0), [track(7), track(8)], 1)), [[7, 1, 8], 1]);
  assert.deepEqual(seen(follow(queue([1], 0), [], 3)), [[1], 0]);
  assert.deepEqual(seen(follow(queue([], -1), [track(7)], 0)), [[7], -1]);
});

test("changes leave the old queue as it was", () => {
  const before = queue([1, 2, 3], 0);
  remove(before, 1);
  move(before, 1, 1);
  follow(before, [track(9)], 0);
  assert.deepEqual(seen(before), [[1, 2, 3], 0]);
});

test("songs that played before their description get it, and the others keep theirs", () => {
  const tracks = [
    { uid: 1, song_id: 5, title: "", is_described: false },
    { uid: 2, song_id: 5, title: "Song A" }, // a blind track
    { uid: 3, song_id: 6, title: "", is_described: false },
  ];
  const [first, blind, unknown] = describe(tracks, [{ uid: 0, song_id: 5, title: "Tides" }]);
  assert.deepEqual(first, { uid: 1, song_id: 5, title: "Tides", is_described: true });
  assert.equal(blind.title, "Song A");
  assert.equal(unknown.is_described, false);
});

test("failed songs are skipped, and the ones before are not played again", () => {
  assert.equal(nextPlayable(queue([1, 2, 3], 0), new Set([2])), 2);
  assert.equal(nextPlayable(queue([1, 2, 3], 1), new Set([3])), -1);
});

test("recent songs come once, the latest first, and songs of the queue before them", () => {
  assert.deepEqual(recentSongs([4, 5, 6], [track(1, 5), track(2, 7)], 3), [7, 5, 6]);
});
