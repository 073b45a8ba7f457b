// What Listen shows: the search box, the map, the current song, chips, and the queue. It has no state of its own that
// must last: it shows the state of `listening.js`. It lives in an element of its own, which moves from page to page.

import { ask, resolve } from "../addresses.js";
import { applyStyle, fetchStyle } from "../component.js";
import { button, clock, element, iconButton } from "../elements.js";
import { Finder } from "../find/finder.js";
import { SongMap } from "../map/map.js";
import { Preview } from "../map/preview.js";
import { drawList } from "../songs/list.js";
import { stored } from "../storage.js";
import { drawFilters, select } from "./filters.js";
import { fillSelection, fillSong } from "./menus.js";
import { panelBelow } from "./panel.js";
import { DropZone, fillSounds } from "./sound_box.js";
import * as states from "./state.js";

const STYLE = await fetchStyle("listen.css", import.meta.url);
const N_BEFORE = 2; // songs that are shown before the current one
const N_COMING = 8; // songs to which the map draws the line of the queue
const LEAST_PX = 420; // height of the page, except on phones
const EDGE_PX = 24; // between the page and the player
const ICONS = {
  sound: "M12 4a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V7a3 3 0 0 0-3-3zM6 11v1a6 6 0 0 0 12 0v-1M12 18v3",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  fits: "M12 20s-7-4.5-9-9c-1.3-3 .8-6 3.8-6 2.2 0 3.8 1.2 5.2 3 1.4-1.8 3-3 5.2-3 3 0 5.1 3 3.8 6-2 4.5-9 9-9 9z",
  unfit: "M6 6l12 12M18 6L6 18",
  undo: "M4 9h10a5 5 0 0 1 0 10h-3M4 9l4-4M4 9l4 4",
};
const COLORS = "musicsim.map color"; // key in the browser's storage

export class ListenView {
  /** @param {import("./listening.js").Listening} listening */
  constructor(listening) {
    this.listening = listening;
    /** @type {{label: string, songs: number[]}[]} what can be begun with */
    this.offers = [];
    this.color = stored("localStorage", COLORS) ?? "";
    /** @type {string} id of the second map's model */
    this.beside = "";
    this.highest = 0; // distance of the page from the top of the window, where the page is not scrolled
    /** @type {any} the player's view that the page leaves room for */
    this.fitted = null;
    this.drawn = new Map();
    this.isMenuEarly = false; // the menu was opened before the queue was known
    this.isLackingOptions = false; // the panel with the filters was opened before they were known
    /** @type {Preview | null} the song under the pointer, once one was heard */
    this.preview = null;
    /** @type {any} the dialog *Why?*, once it was opened */
    this.why = null;
    this.host = element("div", { className: "musicsim-listen" });
    const shadow = this.host.attachShadow({ mode: "open" });
    applyStyle(shadow, STYLE);
    this.root = element("div", { className: "listen" });
    this.root.dataset.testid = "listen";
    shadow.append(this.root);
    this.build();
    this.drop = new DropZone(this.host, (file) => listening.send(file, file.name));
    this.resizing = new ResizeObserver(() => this.fit());
    this.resizing.observe(this.root);
    window.addEventListener("resize", () => { this.highest = 0; this.fit(); });
  }

  /** Show the page below an element. @param {HTMLElement} parent @param {any} data */
  show(parent, { offers }) {
    this.offers = offers;
    if (this.host.parentElement !== parent) {
      parent.append(this.host);
      this.highest = 0;
      if (this.listening.known) this.listening.openAddress();
    }
    this.fit();
    this.render();
  }

  // -------------------------------------------------------------------------------------- layout

  build() {
    const { listening } = this;
    const box = element("div", { className: "find" });
    const top = element("div", { className: "top" }, box);
    this.root.append(top);
    this.finder = new Finder(box, {
      label: "Search", isLabelled: false, placeholder: "A song, an artist, or words: slow piano",
      search: (text, signal) => ask("api/find", { text, library: listening.context.library }, { signal }),
      onPick: (match) => listening.pick(match),
    });
    const sound = iconButton(ICONS.sound, "Add sound", () => {}, { className: "icon sound" });
    const sounds = panelBelow(sound, "Add sound", (panel) => fillSounds(panel, (file, name) => listening.send(file, name), (error) => listening.fail(error)));
    this.tabs = this.makeTabs();
    this.maps = element("div", { className: "maps" });
    this.facts = element("p", { className: "facts" });
    this.art = element("span", { className: "art" });
    this.words = element("div", { className: "words" });
    // elements around an open menu must stay, because it would close
    this.card = element("div", { className: "card" }, this.art, this.words, this.makeActions());
    this.chips = element("div", { className: "chips", ariaLabel: "Direction and conditions" });
    this.chips.setAttribute("role", "group");
    this.status = element("p", { className: "status" });
    this.status.setAttribute("role", "status");
    this.queue = element("div", { className: "queue" });
    this.list = this.queue.attachShadow({ mode: "open" }); // keeps the styles of the list and of this page apart
    this.beginning = element("div", { className: "beginning" });
    this.column = element("div", { className: "beside" }, this.beginning, this.card, this.chips, this.status, this.queue);
    top.append(sound, sounds);
    this.root.append(
      this.tabs,
      element("div", { className: "columns" }, element("div", { className: "left" }, this.maps, this.facts), this.column),
    );
    this.makeChips();
  }

  /** Phones show either the queue or the map; other screens hide these tabs. */
  makeTabs() {
    const tabs = element("fieldset", { className: "tabs" });
    for (const name of ["Queue", "Map"]) {
      const radio = element("input", { type: "radio", name: "musicsim-tab", checked: name === "Queue" });
      radio.addEventListener("change", () => { this.root.dataset.tab = name.toLowerCase(); this.fitMaps(); });
      tabs.append(element("label", {}, radio, name));
    }
    this.root.dataset.tab = "queue";
    return tabs;
  }

  makeActions() {
    const { listening } = this;
    const thumb = (icon, label, value) => iconButton(icon, label, () => listening.current && listening.pressThumb(listening.current, value), { className: "icon" });
    this.fits = thumb(ICONS.fits, "Fits", 1);
    this.unfit = thumb(ICONS.unfit, "Does not fit", -1);
    const more = iconButton(ICONS.more, "More about this song", () => {}, { className: "icon" });
    const panel = panelBelow(more, "More about this song", (open) => this.fillMenu(open));
    this.menu = panel;
    this.play = button("Play", () => listening.play(-1), { className: "primary" }, "Play");
    return element("div", { className: "actions" }, this.play, this.fits, this.unfit, more, panel);
  }

  fillMenu(panel) {
    this.isMenuEarly = !this.listening.answer;
    fillSong(panel, this.listening, this);
  }

  makeChips() {
    const { listening } = this;
    const act = (label, title, doing, does) => button(label, () => listening.model && listening.change(does(listening.model), doing), { className: "chip", title }, label);
    this.calmer = act("Calmer", "Plays only songs that are calmer than this one. Click again for even calmer songs.", "choosing calmer songs", (model) => states.makeCalmer(model, 1));
    this.livelier = act("Livelier", "Plays only songs that are livelier than this one. Click again for even livelier songs.", "choosing livelier songs", (model) => states.makeCalmer(model, -1));
    this.surprise = act("More surprising", "Plays fewer of the nearest songs, and takes longer steps after them.", "choosing surprising songs", states.surpriseMore);
    this.filters = button("Filters", () => {}, { className: "chip" }, "Filters");
    this.filterPanel = panelBelow(this.filters, "Filters", (panel) => this.fillFilters(panel));
    this.undo = iconButton(ICONS.undo, "Undo", () => listening.undo(), { className: "chip" });
    this.selection = button("Songs on the map", () => {}, { className: "chip marked" });
    const selectionPanel = panelBelow(this.selection, "Songs on the map", (panel) => fillSelection(panel, listening));
    this.set = element("span", { className: "set" });
    this.chips.append(this.selection, this.undo, this.calmer, this.livelier, this.surprise, this.filters, this.set);
    this.root.append(this.filterPanel, selectionPanel);
  }

  fillFilters(panel) {
    const { listening } = this;
    panel.classList.add("filters");
    if (!listening.options.length) {
      panel.replaceChildren("Reading the options…");
      this.isLackingOptions = true;
      return;
    }
    this.isLackingOptions = false;
    drawFilters(panel, listening.options, listening.now?.search ?? {}, {
      library: listening.context.library,
      onChange: (name, value) => {
        if (listening.model) listening.change(states.setOption(listening.model, name, value), "choosing songs that match");
      },
    });
  }

  /** Map and queue fill the window down to the player. */
  fit() {
    if (!this.host.isConnected) return;
    const { top } = this.root.getBoundingClientRect();
    this.highest = Math.max(this.highest, top);
    const player = this.listening.player.view?.root;
    if (player) this.resizing.observe(player); // it can appear after this page
    const below = player?.getBoundingClientRect().height ?? 0;
    const room = window.innerHeight - this.highest - below - EDGE_PX;
    this.root.style.height = `${Math.max(LEAST_PX, Math.round(room))}px`;
    this.fitMaps();
  }

  fitMaps() {
    for (const { map } of this.drawn.values()) map.fit();
  }

  // ----------------------------------------------------------------------------------- rendering

  render() {
    if (!this.host.isConnected) return;
    const { listening } = this;
    if (listening.player.view !== this.fitted) this.fit();
    this.fitted = listening.player.view;
    const isBegun = listening.hasSeed;
    this.root.toggleAttribute("data-begun", isBegun);
    this.beginning.hidden = isBegun || Boolean(listening.doing) || !listening.known; // the address may name a song
    this.card.hidden = !isBegun;
    this.chips.hidden = !isBegun && listening.marked.length < 2;
    if (!this.beginning.hidden) this.renderBeginning();
    if (isBegun) this.renderCard();
    this.renderChips();
    this.renderStatus();
    this.renderList();
    this.renderMaps();
  }

  renderBeginning() {
    const { offers, listening } = this;
    const parts = [
      element("h2", {}, "Start here"),
      element("p", {}, "Choose a song on the map or in the box: it plays, and similar songs follow."),
      element("div", { className: "offers" }, ...offers.map(({ label, songs }, place) => (
        button(label, () => listening.startSeveral(songs), { className: place ? "" : "primary" }, label)
      ))),
      element("p", { className: "small" }, "Or drop a sound file anywhere on this page."),
      ...(listening.context.isOwner ? [button("Add your own music", () => listening.client.go("library"), { className: "link" }, "Add your own music")] : []),
    ];
    this.beginning.replaceChildren(...parts);
  }

  /** The song that is playing if it is in this queue, else the seed. */
  get shown() {
    const { listening } = this;
    const { current } = listening;
    return listening.items.find(({ song }) => song.id === current) ?? (listening.answer?.start?.song.id === current ? listening.answer.start : null);
  }

  renderCard() {
    const { listening } = this;
    const { current, sound, answer, player } = listening;
    const item = this.shown;
    const isSound = sound && !item;
    const title = isSound ? sound.name : item ? item.song.title : current ? (listening.titles.get(current) ?? "…") : this.matchesInWords(answer);
    const facts = isSound ? ["Your sound", clock(sound.duration_s), ...sound.notes] : item ? (item.facts ?? []) : [];
    const cover = current && !isSound ? `url("${resolve(`songs/${current}/cover?library=${encodeURIComponent(listening.context.library)}`)}")` : "";
    if (this.art.style.backgroundImage !== cover) this.art.style.backgroundImage = cover;
    if (this.isMenuEarly && answer && this.menu.matches(":popover-open")) this.fillMenu(this.menu);
    const line = facts.filter(Boolean).join(" · ");
    this.words.replaceChildren(
      element("h2", { title }, title), element("p", { className: "small", title: line }, line),
    );
    const isPlaying = listening.isFollowed && player.state === "playing";
    this.play.hidden = isPlaying || (listening.isFollowed && Boolean(player.track));
    const isJudged = item && item !== answer?.start;
    for (const [made, value] of /** @type {[HTMLElement, number][]} */ ([[this.fits, 1], [this.unfit, -1]])) {
      made.hidden = !isJudged;
      made.setAttribute("aria-pressed", String(isJudged && states.judged(/** @type {any} */ (listening.now))[current ?? 0] === value));
    }
  }

  matchesInWords(answer) {
    if (!answer) return "…";
    const n = answer.items.length;
    return n ? `${n} ${n === 1 ? "song" : "songs"} that match` : "No songs match";
  }

  renderChips() {
    const { listening } = this;
    const { now, model, options, answer, titles, marked } = listening;
    const isBegun = listening.hasSeed;
    for (const one of [this.calmer, this.livelier, this.surprise, this.filters, this.set]) one.hidden = !isBegun;
    if (this.isLackingOptions && options.length && this.filterPanel.matches(":popover-open")) this.fillFilters(this.filterPanel);
    this.undo.hidden = !isBegun || !model?.before.length;
    this.selection.hidden = marked.length < 2;
    this.selection.textContent = `${marked.length.toLocaleString("en")} songs marked ▾`;
    this.selection.ariaLabel = `${marked.length.toLocaleString("en")} songs marked`;
    if (!isBegun || !now) { this.set.replaceChildren(); return; }
    this.calmer.disabled = now.calmer >= states.MAX_CALMER;
    this.livelier.disabled = now.calmer <= -states.MAX_CALMER;
    this.surprise.disabled = now.surprise >= states.SURPRISES.length - 1;
    const chips = states.chipsOf(now, answer, titles, options).map(({ key, label, drop }) => {
      const made = button(`Remove: ${label}`, () => listening.model && listening.change(drop(listening.model)), { className: "chip is-set", title: "Click to remove" }, `${label} ✕`);
      made.dataset.key = key;
      return made;
    });
    const focused = /** @type {HTMLElement | null} */ (/** @type {ShadowRoot} */ (this.root.getRootNode()).activeElement)?.dataset.key;
    this.set.replaceChildren(...chips);
    if (focused) chips.find(({ dataset }) => dataset.key === focused)?.focus();
  }

  renderStatus() {
    const { listening } = this;
    const { doing, error, said, answer } = listening;
    const unknown = answer?.unknown_words ?? [];
    const notes = [
      ...(unknown.length ? [`Nothing in this library matches ${unknown.map((/** @type {string} */ word) => `“${word}”`).join(", ")}, so the search ignores it.`] : []),
      ...(answer?.search_trouble ? [answer.search_trouble] : []),
      ...(listening.hasSeed && answer && !answer.items.length ? ["No songs match. Use fewer filters or words."] : []),
      ...(said ? [said] : []),
    ];
    const drift = this.describeDrift();
    this.root.toggleAttribute("data-busy", Boolean(doing));
    this.status.classList.toggle("error", Boolean(error));
    const words = error || (doing ? `${doing[0].toUpperCase()}${doing.slice(1)}…` : notes.join(" "));
    const parts = [words];
    if (listening.isSending) parts.push(button("Cancel", () => listening.cancel(), { className: "link" }, "Cancel"));
    if (!words && drift) parts.push(...drift);
    if (error && listening.hasSeed) parts.push(button("Try again", () => listening.ask(), { className: "link" }, "Try again"));
    this.status.replaceChildren(...parts.filter(Boolean));
    this.status.hidden = !words && !drift;
  }

  /** Say whether the song that plays is still near the seed, and offer the way back if not. @returns {any[] | null} */
  describeDrift() {
    const { listening } = this;
    const { now, current, titles, sound } = listening;
    const { farther } = listening.items.find(({ song }) => song.id === current) ?? {};
    const seed = sound?.name ?? titles.get(now?.seed.song ?? 0);
    if (!seed || farther === null || farther === undefined || now?.target) return null;
    if (farther >= states.NEAR) return [`Still near “${seed}”.`];
    return [`Has moved away from “${seed}”. `, button(`Go back to songs like “${seed}”`, () => listening.goBack(), { className: "link" }, "Go back")];
  }

  renderList() {
    const { listening } = this;
    const { items, now, current } = listening;
    const place = items.findIndex(({ song }) => song.id === current);
    const first = Math.max(0, place - N_BEFORE);
    const thumbs = now ? states.judged(now) : {};
    const canExplain = Boolean(now && (now.seed.song || now.seed.sound || Object.keys(now.examples).length));
    const rows = !listening.hasSeed ? [] : items.slice(first).map((item) => ({
      song_id: item.song.id, title: item.song.title, sub: (item.sub ?? item.song.artist ?? ""), reason: item.reason ?? "",
      length: clock(item.song.duration_s), similarity: item.similarity ?? null, link: null, can_explain: canExplain,
      is_kept: item.is_pinned, is_current: item.song.id === current, judged: canExplain ? (thumbs[item.song.id] ?? 0) : null,
      is_missing: item.track.is_missing ?? false,
    }));
    const key = JSON.stringify([rows, first]);
    if (key === this.listed) return;
    this.listed = key;
    const covers = `songs/{}/cover?library=${encodeURIComponent(listening.context.library)}`;
    drawList(this.list, { rows, editable: false, queue: true, first, notSimilar: "", covers }, (kind, index) => this.act(kind, first + index));
  }

  act(kind, place) {
    const { listening } = this;
    const { song } = listening.items[place];
    const { model } = listening;
    if (!model) return;
    if (kind === "play") listening.play(place);
    else if (kind === "why") this.explain(song.id);
    else if (kind === "like" || kind === "unlike") listening.pressThumb(song.id, kind === "like" ? 1 : -1);
    else if (kind === "keep") listening.change(states.togglePin(model, song.id, place), "keeping the place");
    else if (kind === "drop") listening.change(states.remove(model, song.id), "choosing another song");
    else if (kind === "similar") listening.begin({ song: song.id }, { plays: true });
  }

  /** Explain why a song is in the queue. @param {number} id */
  async explain(id) {
    const { WhyDialog } = await import("../why/why.js");
    this.why ??= new WhyDialog(this.listening.client);
    const { now, context, sound } = this.listening;
    if (!now) return;
    const signs = (/** @type {number} */ sign) => Object.keys(now.examples).filter((one) => now.examples[one] === sign).map(Number);
    this.why.show({
      parent: this.root, findOpener: () => this.list.querySelector(`[data-song-id="${id}"] .opener`), other: id, song: now.seed.song ?? null, sound: now.seed.sound ?? null,
      soundUrl: sound?.track?.url ?? null, soundName: sound?.name ?? null, examples: signs(1), unlike: signs(-1), part: now.part, factor: now.search.by ?? "",
      library: context.library, model: context.model,
    });
  }

  showRow(id) {
    this.list.querySelector(`[data-song-id="${id}"]`)?.scrollIntoView({ block: "nearest" });
  }

  // ------------------------------------------------------------------------------------- the map

  renderMaps() {
    const { listening } = this;
    const { context, map, marked, items, now, sound } = listening;
    if (!map || !context.modelId) return;
    const colors = map.colors ?? [];
    const color = colors.includes(this.color) ? this.color : colors[0];
    const models = map.models.filter(({ id }) => id !== context.modelId);
    const beside = models.some(({ id }) => id === this.beside) ? this.beside : "";
    const shown = beside ? [beside, context.modelId] : [context.modelId];
    for (const [id, { root, map: old }] of this.drawn) {
      if (shown.includes(id)) continue;
      old.close();
      root.remove();
      this.drawn.delete(id);
    }
    const near = items.filter(({ similarity }) => similarity !== null && similarity !== undefined).map(({ song }) => song.id);
    for (const id of shown) {
      const one = this.drawn.get(id) ?? this.makeMap(id);
      const isOwn = id === context.modelId;
      one.name.textContent = beside ? map.models.find((/** @type {any} */ model) => model.id === id)?.name ?? "" : "";
      this.fillCorner(one, colors, color, models, beside, isOwn);
      one.map.receive({
        map: { model: id, library: context.library, revision: context.revision }, color_by: color,
        chosen: listening.hasSeed ? listening.current : null, found: marked.length ? marked.slice(0, 2000) : near,
        path: [now?.seed.song, ...(now?.heard ?? []).map(({ song_id: song }) => song)].filter(Boolean),
        coming: items.slice(now?.heard.length ?? 0).slice(0, N_COMING).map(({ song }) => song.id),
        query: isOwn && sound && now?.seed.sound ? sound.place : null, height: null, legend: true,
        alt: `Map of ${map.n_indexed.toLocaleString("en")} songs. Arrow keys move from song to song; Enter plays the song.`,
      });
    }
    this.facts.textContent = this.factsOf(map, Boolean(sound && now?.seed.sound), Boolean(beside));
  }

  makeMap(id) {
    const { listening } = this;
    const root = element("div", { className: "map" });
    const corner = element("div", { className: "corner" });
    const choices = element("label", {});
    const name = element("b", {});
    this.maps.append(root);
    const pick = (/** @type {number} */ song) => listening.begin({ song }, { plays: true });
    const map = new SongMap(root, {
      corner: [name, corner], choices: [choices], onPick: pick,
      isDisliked: (song) => listening.player.thumb(song) < 0 || (listening.now ? states.judged(listening.now)[song] < 0 : false),
      onPreview: (song) => this.hear(song),
      onOutline: (ids) => (ids.length === 1 ? pick(ids[0]) : ids.length && listening.mark(ids)),
      onFold: (isFolded) => { this.root.toggleAttribute("data-folded", isFolded); this.fitMaps(); },
    });
    const one = { root, map, corner, choices, name };
    this.drawn.set(id, one);
    return one;
  }

  /** Play a song while the pointer rests on it; null ends it. @param {number | null} song */
  hear(song) {
    const { player, context } = this.listening;
    if (song === null) { this.preview?.stop(); return; }
    this.preview ??= new Preview(player);
    this.preview.play(song, context.library);
  }

  fillCorner({ corner, choices }, colors, color, models, beside, isOwn) {
    const key = JSON.stringify([colors, color, models, beside]);
    if (corner.dataset.filled === key) return;
    corner.dataset.filled = key;
    corner.replaceChildren();
    choices.hidden = !isOwn || !models.length;
    const compare = (/** @type {string} */ id) => { this.beside = id; this.renderMaps(); };
    if (!isOwn) {
      corner.append(iconButton(ICONS.unfit, "Close this map", () => compare(""), { className: "icon" }));
      return;
    }
    corner.append(select(colors.map((/** @type {string} */ name) => [name, `color: ${name}`]), color, (by) => {
      this.color = by;
      stored("localStorage", COLORS, by);
      this.renderMaps();
    }, { ariaLabel: "Color by" }));
    const names = [["", "no other"], ...models.map(({ id, name }) => [id, name])];
    choices.replaceChildren("Compare with model", select(names, beside, compare));
  }

  factsOf(map, hasStar, areTwo) {
    const number = (/** @type {number} */ n) => n.toLocaleString("en");
    const alike = map.is_native || !map.model ? "similar in sound" : `similar according to the model “${map.model.name}”`;
    return [
      `${number(map.n_indexed)} songs; nearby songs are ${alike}. Click a point to play it.`,
      ...(hasStar ? ["The star is your query; rings mark the nearest songs."] : areTwo ? ["Rings mark the nearest songs, on both maps."] : []),
      ...(map.n_duplicates ? [`${number(map.n_duplicates)} ${map.n_duplicates === 1 ? "duplicate" : "duplicates"} hidden.`] : []),
      ...(map.n_waiting ? [`${number(map.n_waiting)} more are not on the map yet.`] : []),
    ].join(" ");
  }
}
