import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document ??= /** @type {any} */ ({ baseURI: "http://localhost:8501/" });
const { ask } = await import("../../musicsim/web/addresses.js");

test("an answer that is aborted while it is read is an error", async () => {
  const stop = new AbortController();
  globalThis.fetch = async () => {
    const json = async () => {
      stop.abort();
      throw stop.signal.reason;
    };
    return /** @type {any} */ ({ status: 200, ok: true, json });
  };
  await assert.rejects(ask("api/sounds/line", {}, { signal: stop.signal }), { name: "AbortError" });
});
