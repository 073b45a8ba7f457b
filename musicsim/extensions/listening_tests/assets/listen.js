// A listener's page: consent, pairs to listen to and grade with the mouse or keyboard, and the end. The server saves each
// grade immediately and knows the current pair, so a reloaded page resumes there. Strings are set as text, never as HTML.

const PATIENCE_S = 2; // seconds of each song that a listener must hear before grading
const STEP = 5;

const root = /** @type {HTMLElement} */ (document.querySelector("#test"));
const find = (query) => root.querySelector(query);
const all = (query) => /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(query));
const address = location.pathname.replace(/\/$/, "");

async function ask(path, said) {
  const [where, query = ""] = path.split("?");
  const asked = new URLSearchParams(location.search);
  for (const [name, value] of new URLSearchParams(query)) asked.set(name, value);
  const options = said === undefined ? {} : { method: "POST", body: JSON.stringify(said), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(`${address}/${where}?${asked}`, options);
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error || "the server did not respond.");
  return told;
}

class Test {
  constructor() {
    this.state = null;
    this.category = this.fine = null;
    this.isBusy = false;
    this.slider = find(".fine input");
    this.sounds = [0, 1].map((side) => this.sound(side));
    for (const button of all("[data-do]")) button.addEventListener("click", () => this.act(button.dataset.do));
    for (const button of all(".song")) button.addEventListener("click", () => this.play(Number(button.dataset.side)));
    for (const button of all("[data-category]")) button.addEventListener("click", () => this.choose(Number(button.dataset.category)));
    this.slider.addEventListener("input", () => this.rate(Number(this.slider.value)));
    this.slider.addEventListener("click", () => this.rate(Number(this.slider.value))); // a click that does not move the slider also sets a score
    document.addEventListener("keydown", (event) => this.onKey(event));
    this.go(() => ask("state"));
  }

  // ------------------------------------------------------------------------------------- the songs

  sound(side) {
    const audio = Object.assign(new Audio(), { preload: "auto", heard: 0, begin: 0, last: 0 });
    audio.dataset.testid = `sound-${side}`;
    audio.addEventListener("timeupdate", () => this.onTime(side));
    for (const name of ["play", "pause", "ended", "error"]) audio.addEventListener(name, () => this.look());
    audio.addEventListener("loadedmetadata", () => this.rewind(side));
    root.append(audio);
    return audio;
  }

  rewind(side) {
    const audio = this.sounds[side];
    const start = this.state.starts[side] ?? 0;
    audio.begin = start < audio.duration - 1 ? start : 0;
    audio.currentTime = audio.begin;
    audio.last = audio.begin;
  }

  onTime(side) {
    const audio = this.sounds[side];
    const passed = audio.currentTime - (audio.last);
    if (!audio.paused && passed > 0 && passed < 1) audio.heard += passed;
    audio.last = audio.currentTime;
    if (audio.currentTime >= audio.begin + this.state.seconds) {
      audio.pause();
      this.rewind(side);
    }
    this.look();
  }

  /** Play or pause a song, resuming where it stopped; pause the other song. */
  play(side) {
    const audio = this.sounds[side];
    if (!audio.paused) return audio.pause();
    this.sounds[1 - side].pause();
    this.latest = side;
    if (audio.ended) this.rewind(side);
    audio.play().catch(() => this.look());
  }

  isHeard(audio) {
    return audio.heard >= PATIENCE_S || (audio.ended && audio.heard > 0);
  }

  // ------------------------------------------------------------------------------------- the grade

  choose(category) {
    this.category = category;
    this.look();
  }

  rate(fine) {
    this.fine = Math.max(0, Math.min(100, fine));
    this.slider.value = this.fine;
    this.look();
  }

  missing() {
    const broken = this.sounds.some((audio) => audio.error);
    if (broken) return "A song cannot be played. Reload the page, or skip this pair.";
    const unheard = ["Song A", "Song B"].filter((_, side) => !this.isHeard(this.sounds[side]) && !this.state.grade);
    if (unheard.length) return `Listen to ${unheard.join(" and ")} first.`;
    if (this.category === null) return "Choose how similar the songs sound.";
    if (this.fine === null) return "Set the fine score.";
    return "";
  }

  act(kind) {
    const { state } = this;
    if (kind === "consent") return this.go(() => ask("consent", {}));
    if (kind === "back") return state.place > 0 && this.go(() => ask(`state?place=${state.place - 1}`));
    if (kind === "pass") return this.go(() => ask("grades", { place: state.place, category: null, fine: null }));
    const missing = this.missing();
    if (missing) {
      find(".hint").textContent = missing;
      return undefined;
    }
    return this.go(() => ask("grades", { place: state.place, category: this.category, fine: this.fine }));
  }

  /** Send one request at a time and show the state that the server returns; after an error, the listener can try again. */
  async go(next) {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      this.show(await next());
      find(".trouble").textContent = "";
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      find(".trouble").textContent = this.state ? `Not saved: ${message}` : message;
    } finally {
      this.isBusy = false;
    }
  }

  // -------------------------------------------------------------------------------------- the keys

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || root.dataset.stage !== "pair") return;
    const isButton = event.target instanceof HTMLButtonElement;
    const key = event.key.toLowerCase();
    const by = { arrowup: 1, arrowdown: -1 }[key];
    if (event.repeat && !by) return;
    if (key === "a" || key === "b") this.play(key === "a" ? 0 : 1);
    else if (key === " " && !isButton) this.play(this.latest ?? 0);
    else if (/^[123]$/.test(key)) this.choose(Number(key) - 1);
    else if (by) this.rate((this.fine ?? 50) + by * (event.shiftKey ? 1 : STEP));
    else if (key === "enter" && !isButton) this.act("next");
    else if (key === "z") this.act("back");
    else return;
    event.preventDefault();
  }

  // ------------------------------------------------------------------------------------- the page

  show(state) {
    const stage = !state.has_consented ? "consent" : state.starts.length ? "pair" : "done";
    this.state = state;
    root.dataset.stage = stage;
    document.title = state.name;
    find("h1").textContent = state.name;
    find(".consent .text").textContent = state.consent;
    for (const section of all(".stage")) section.hidden = !section.classList.contains(stage);
    find("progress").value = state.n_graded / state.n_pairs;
    find(".progress").textContent = stage === "consent" ? `${state.n_pairs} pairs` : `${state.n_graded} of ${state.n_pairs} pairs graded`;
    root.dataset.place = String(state.place);
    [this.category, this.fine] = state.grade ?? [null, null];
    this.slider.value = this.fine ?? 50;
    this.latest = undefined;
    this.sounds.forEach((audio, side) => {
      audio.pause();
      audio.heard = 0;
      if (stage === "pair") audio.src = `${address}/sound/${state.place}/${side}${location.search}`;
    });
    find(".hint").textContent = "";
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur(); // so that keys do not act on the last button
    this.look();
  }

  look() {
    if (!this.state) return;
    this.sounds.forEach((audio, side) => {
      const button = find(`[data-side="${side}"]`);
      const state = audio.error ? "broken" : !audio.paused ? "playing" : this.isHeard(audio) ? "heard" : "new";
      button.dataset.state = state;
      button.querySelector(".what").textContent = { broken: "cannot be played", playing: "playing", heard: "heard", new: "play" }[state];
      const share = (audio.currentTime - (audio.begin)) / this.state.seconds;
      button.querySelector(".bar").style.width = `${100 * Math.max(0, Math.min(1, share || 0))}%`;
    });
    for (const button of all("[data-category]")) button.setAttribute("aria-checked", String(Number(button.dataset.category) === this.category));
    find(".fine").toggleAttribute("data-unset", this.fine === null);
    find(".fine output").textContent = this.fine ?? "–";
    find('.pair [data-do="back"]').disabled = this.state.place === 0;
    find('[data-do="pass"]').hidden = !this.sounds.some((audio) => audio.error);
    if (!this.missing()) find(".hint").textContent = "";
  }
}

new Test();
