// Addresses of the app, and questions to its HTTP interface.

/** URL of the app, with a trailing slash. */
export const BASE = new URL("../../../", import.meta.url).href;

/** Return the URL of something whose address is relative to the app. @returns {string} */
export const resolve = (/** @type {string} */ address) => new URL(address.replace(/^\/(?!\/)/, ""), BASE).href;

const AGAIN = "The app cannot be reached. Is it running?";

/** An answer that is an error; its message is a sentence for the user. */
export class Refusal extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Return a sentence from the body of an error: `error` is ours, `detail` is FastAPI's. */
function sentenceOf(body, status) {
  const { error, detail } = body ?? {};
  const said = error ?? (Array.isArray(detail) ? detail.map(({ msg }) => msg).join("; ") : detail);
  const words = typeof said === "string" && said ? said : `the server answered with the status ${status}.`;
  return words[0].toUpperCase() + words.slice(1);
}

/**
 * Ask the app, and return its answer. Parameters that are null, undefined or empty are left out.
 * @param {string} address
 * @param {Record<string, unknown>} [query]
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
export async function ask(address, query = {}, options = {}) {
  const url = new URL(resolve(address));
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") url.searchParams.append(name, String(one));
  }
  let answer;
  try {
    answer = await fetch(url, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(AGAIN, 0);
  }
  const body = answer.status === 204 ? null : await answer.json().catch((error) => {
    if (options.signal?.aborted) throw error;
    return null;
  });
  if (!answer.ok) throw new Refusal(sentenceOf(body, answer.status), answer.status);
  return body;
}

/** Send a JSON body, and return the answer. @param {string} address @param {unknown} body @param {Record<string, unknown>} [query] @param {RequestInit} [options] */
export function post(address, body, query = {}, options = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(address, query, { method: "POST", headers, body: JSON.stringify(body), ...options });
}
