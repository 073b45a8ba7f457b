// Fades on the beat as pure functions: where the next song must be, how its position is corrected, and speeds and gains.
// Positions are seconds in a song, and rates are relative to the song's own speed.

/**
 * The server's answer for a song and the next one; see musicsim/explorer/mixing/transitions.py.
 * @typedef {object} Transition
 * @property {[number | null, number | null]} tempos beats per minute
 * @property {[string, string]} keys
 * @property {string} reason why the fade is not on the beat; empty if it is
 * @property {number} leave_s position in the first song at which the fade begins
 * @property {number} enter_s position in the next song at the same time
 * @property {number} duration_s
 * @property {[number, number]} rates of both songs during the fade
 */

export const WARM_UP_S = 1.4; // the next song plays silently for this time before the fade, or longer
const MAX_WARM_UP_S = 5; // it starts at its beginning if this is possible: after a jump, MP3 files are up to 20 ms off
const GLIDE_S = 6; // the first song reaches the common tempo in this time before that
const RETURN_S = 8; // the next song returns to its own tempo in this time after the fade
const MAX_JUMP_S = 0.15; // a larger offset is corrected by a jump, and a smaller one by the speed
const REACTION_S = 0.3; // the offset would be gone after this time
const MAX_CHANGE = 0.2; // of the speed, while the song is silent
const MAX_HEARD_CHANGE = 0.006; // of the speed, afterward
const EXACT_S = 0.002; // offsets up to this are not corrected while the song is silent
const UNHEARD_S = 0.008; // the same afterward
const ALIGNED_S = 0.006; // the fade may begin
const MAX_SPREAD_S = 0.02; // of the latest offsets; the clocks are too coarse beyond
const N_OFFSETS = 5; // number of the latest offsets that count

/** Return the position of the next song at which its beats coincide with those of the first one. @param {Transition} plan @param {number} position @returns {number} */
export function partnerOf({ leave_s, enter_s, rates }, position) {
  return enter_s + ((position - leave_s) * rates[1]) / rates[0];
}

/** Return the position of the first song at which the mix begins: its speed starts to change. @param {Transition} plan @returns {number} */
export function beginOf(plan) {
  return warmUpOf(plan) - GLIDE_S;
}

/** Return the position of the first song at which the next one starts, silently. @param {Transition} plan @returns {number} */
export function warmUpOf({ leave_s, enter_s, rates }) {
  const whole = enter_s / rates[1];
  return leave_s - (whole <= MAX_WARM_UP_S ? whole : WARM_UP_S) * rates[0];
}

/** Return the speed of the first song, which reaches the common tempo before the next song starts. @param {Transition} plan @param {number} position @returns {number} */
export function rateAt(plan, position) {
  return 1 + (plan.rates[0] - 1) * within(0, (position - beginOf(plan)) / GLIDE_S, 1);
}

/** Return the speed of the next song some time after the fade. @param {Transition} plan @param {number} seconds @returns {number} */
export function rateAfter({ rates }, seconds) {
  return 1 + (rates[1] - 1) * within(0, 1 - seconds / RETURN_S, 1);
}

/** Return the share of the fade that is over, 0 to 1; it began at position `from` of the first song. @param {Transition} plan @param {number} from @param {number} position @returns {number} */
export function shareOf({ leave_s, duration_s, rates }, from, position) {
  const end = leave_s + duration_s * rates[0];
  return end > from ? within(0, (position - from) / (end - from), 1) : 1;
}

/** Return the latest offsets with one more. @param {number[]} offsets @param {number} offset @returns {number[]} */
export function withOffset(offsets, offset) {
  return [...offsets, offset].slice(-N_OFFSETS);
}

/**
 * Decide how to align the next song, given its latest offsets in seconds; they are positive if it is ahead. `jump` is
 * by how much to change its position, and `change` of its speed is relative to the common tempo.
 * @param {number[]} offsets @param {{isHeard: boolean}} how
 * @returns {{jump: number, change: number, isAligned: boolean}}
 */
export function correct(offsets, { isHeard }) {
  const keep = { jump: 0, change: 0, isAligned: false };
  if (offsets.length < N_OFFSETS) return keep;
  const sorted = offsets.toSorted((a, b) => a - b);
  const middle = sorted[N_OFFSETS >> 1];
  if (Math.abs(middle) > MAX_JUMP_S) return isHeard ? keep : { ...keep, jump: -middle };
  const most = isHeard ? MAX_HEARD_CHANGE : MAX_CHANGE;
  const change = Math.abs(middle) > (isHeard ? UNHEARD_S : EXACT_S) ? within(-most, -middle / REACTION_S, most) : 0;
  const isSteady = sorted[N_OFFSETS - 1] - sorted[0] <= MAX_SPREAD_S;
  return { jump: 0, change, isAligned: isSteady && Math.abs(middle) <= ALIGNED_S };
}

/** Return the tempos and keys of both songs, and why the fade is not on the beat if it is not. @param {Transition} plan @returns {string} */
export function describe({ tempos, keys, reason }) {
  const rounded = tempos.map((tempo) => (tempo ? String(Math.round(tempo)) : "?"));
  const parts = [
    tempos.some(Boolean) ? `${rounded.join(" → ")} beats/min` : "",
    keys.some(Boolean) ? keys.map((key) => key || "?").join(" → ") : "",
    reason ? `crossfade: ${reason}` : "on the beat",
  ];
  return parts.filter(Boolean).join(", ");
}

function within(low, value, high) {
  return Math.max(low, Math.min(high, value));
}
