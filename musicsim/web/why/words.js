// The sentences of *Why?*, without elements. An `answer` is that of GET /api/songs/ID/why.

const MAX_EXAMPLES = 5; // maximum number of examples whose similarities are listed

const percent = (/** @type {number} */ share) => `${(100 * share).toFixed(0).replace(/^-0$/, "0")}%`;

/** Return the sentence with the similarity in three parts; the one in the middle is bold. */
export function describeSimilarity({ similarity, similarity_before: before }) {
  const then = before === null ? "" : `; before learning it was ${before.toFixed(2)}`;
  return ["Similarity: ", similarity.toFixed(2), ` out of 1${then}.`];
}

/** Return a sentence about a list that compares in another way than the explanation; empty if it does not. */
export function describeList({ uses_regions: usesRegions }, factor) {
  if (factor) return `The list shows the similarity in ${factor}, while this explanation is about everything.`;
  if (!usesRegions) return "";
  return "The list may show a different similarity: it uses the metric of the query's region, while this explanation uses the mean of all regions.";
}

/** Return the sentence below the bars. */
export const describePoints = ({ similarity }) => `Points out of 100; they add up to ${(100 * similarity).toFixed(0)}.`;

/** Return a sentence about the largest differences; empty without any. */
export function describeDifferences({ differences, songs }) {
  const sentences = differences.map(({ words, share, share_before: before, more_in_place: place }) => {
    const then = before === null ? "" : `; ${percent(before)} before learning`;
    const more = place === null ? "" : `; more in “${songs[place].title}”`;
    return `${words} (${percent(share)}${then}${more})`;
  });
  return sentences.length ? `Largest differences (share of the squared distance): ${sentences.join("; ")}.` : "";
}

/** Return sentences about what the two songs have in common. */
export function describeCommon({ guessed_tags: guesses, tags, songs, n_listeners: nBoth, listeners_jaccard: share }) {
  let listeners = songs.some((song) => song.n_listeners) ? "no listening data for one song" : "no listening data";
  if (share !== null) {
    const people = nBoth === 1 ? "1 person has" : `${nBoth.toLocaleString("en")} people have`;
    listeners = `${people} played both, ${percent(share)} of those who played either`;
  }
  const guessed = guesses.length ? [`A learned ear recognizes in both: ${guesses.join(", ")}.`] : [];
  return [...guessed, `Tags: ${tags.join(", ") || "none"}.`, `Listeners: ${listeners}.`];
}

/** Return the examples that results should resemble, most similar first, each with its place in the answer. */
export function rankExamples({ like }) {
  return like.map((example, place) => ({ ...example, place })).sort((a, b) => b.similarity - a.similarity);
}

/** Return the sentences about several examples in three parts; the one in the middle is bold. */
export function describeExamples(examples) {
  const ranked = rankExamples(examples);
  const nearest = ranked.slice(0, MAX_EXAMPLES).map(({ title, similarity }) => `${similarity.toFixed(2)} to “${title}”`);
  const others = ranked.length > MAX_EXAMPLES ? " and others" : "";
  const rest = ` out of 1. The most similar example counts most: ${nearest.join(", ")}${others}.`;
  return ["Similarity to all examples together: ", examples.similarity.toFixed(2), rest];
}

/** Return a sentence about the examples that results should not resemble; empty without any. */
export function describeUnlike({ unlike }) {
  const away = unlike.map(({ title, similarity }) => `“${title}” (${similarity.toFixed(2)})`).join(", ");
  return away && `The similarity is lowered because the result resembles ${away}, which you marked “less like this”.`;
}
