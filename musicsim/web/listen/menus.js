// The menus of Listen: about the current song, and about the songs marked on the map.

import { ask, post, resolve } from "../addresses.js";
import { button, element } from "../elements.js";
import { Finder } from "../find/finder.js";
import { menuItem } from "./panel.js";
import * as states from "./state.js";

const MAX_AROUND = 25; // songs that a playlist stays close to
const MAX_PLAYED = 500;
const MAX_TAG = 60;

const section = (/** @type {string} */ title, /** @type {any[]} */ ...parts) => element("div", "section", element("h3", "", title), ...parts);

/** @param {HTMLElement} panel @param {import("./listening.js").Listening} listening @param {any} view */
export function fillSong(panel, listening, view) {
  const { current, items, now, sound, context } = listening;
  if (!now || !listening.model) return;
  const isSeed = current === (now.seed.song ?? null) || (!current && Boolean(sound));
  const inQueue = items.some(({ song }) => song.id === current);
  const parts = [
    ...(inQueue && current && (now.seed.song || now.seed.sound) ? [menuItem("Why?", () => view.explain(current))] : []),
    ...(current && !isSeed ? [menuItem("Similar songs", () => listening.startSimilar(current))] : []),
    ...(sound ? soundItems(listening, sound) : []),
    ...(items.length ? saveItems(listening) : []),
    ...(current ? [menuItem("Plan a playlist from this song", () => listening.client.go("playlist", { first: current, library: context.library }))] : []),
  ];
  panel.replaceChildren(...parts);
  if (now.seed.song || sound) panel.append(targetOf(listening), examplesOf(listening), partOf(listening));
  if (current && !(isSeed && sound)) panel.append(artistsOf(listening, current, context.library));
}

function soundItems(listening, sound) {
  const { isOwner, library } = listening.context;
  const add = async () => {
    try {
      await ask("api/songs", { library, name: sound.name }, { method: "POST", body: sound.file, headers: { "Content-Type": "application/octet-stream" } });
      listening.player.view?.notify(`“${sound.name}” will be added to the library.`, "info");
    } catch (error) {
      listening.fail(error);
    }
  };
  return [
    ...(sound.is_cut && sound.file && isOwner ? [menuItem("Analyze the whole", () => listening.send(sound.file, sound.name, { isWhole: true }))] : []),
    ...(sound.song_id ? [menuItem("It is in your library: show it", () => listening.begin({ song: sound.song_id }, { plays: true }))] : []),
    ...(!sound.song_id && sound.file && isOwner ? [menuItem("Add to the library", add)] : []),
  ];
}

/** The queue as a playlist: its songs with the walk's reasons; pinned songs stay in place. */
function draftOf(listening) {
  const { items, now, answer } = listening;
  const first = answer?.start ? [answer.start] : [];
  const all = [...first, ...items];
  return {
    songs: all.map(({ song }) => song.id),
    reasons: all.map((item) => (item.similarity === null || item.similarity === undefined) && item !== answer?.start ? (item.reason ?? "") : ""),
    pins: Object.values(now.pins),
  };
}

function saveItems(listening) {
  const { client, context } = listening;
  const draft = draftOf(listening);
  const open = menuItem("Open as a playlist", () => client.go("playlist", { ...draft, library: context.library }));
  if (!context.isOwner) return [open];
  const name = element("input", { type: "text", maxLength: 100, ariaLabel: "Name of the playlist", placeholder: "Name" });
  const start = listening.sound?.name ?? listening.titles.get(listening.now?.seed.song) ?? listening.now?.search.words ?? "";
  name.value = `From ${start}`.slice(0, 96);
  const save = menuItem(`Save ${draft.songs.length} songs as a playlist`, async () => {
    try {
      const saved = await post("api/playlists", { ...draft, name: name.value.trim() || `From ${start}` }, { library: context.library });
      listening.player.view?.notify(`Saved as “${saved.name}”. The Playlists page shows it.`, "info");
    } catch (error) {
      listening.fail(error);
    }
  });
  return [element("div", "line", name, save), open];
}

function finderFor(listening, { label, kinds, onPick }) {
  const root = element("div", "finder");
  const made = new Finder(root, {
    label, isLabelled: false, placeholder: label,
    search: (text, signal) => ask("api/find", { text, kind: kinds, library: listening.context.library }, { signal }),
    onPick,
  });
  return { root, made };
}

function targetOf(listening) {
  const lead = ({ value, title }) => {
    listening.titles.set(Number(value), title);
    listening.change(states.change(listening.model, { target: Number(value) }), `choosing songs that lead to ${title}`);
  };
  return section("From here to…", finderFor(listening, { label: "Lead to", kinds: ["song"], onPick: lead }).root);
}

function examplesOf(listening) {
  const add = (/** @type {1 | -1} */ sign) => async ({ kind, value, title }) => {
    const { ids } = kind === "song" ? { ids: [Number(value)] } : await ask("api/find/songs", { ...listening.query, kind, value });
    if (kind === "song") listening.titles.set(Number(value), title);
    const others = ids.filter((/** @type {number} */ id) => id !== listening.now?.seed.song);
    listening.change(states.addExamples(listening.model, others, sign), sign > 0 ? `choosing songs like ${title}` : `avoiding songs like ${title}`);
  };
  const kinds = ["artist", "album", "song"];
  return section(
    "More examples",
    finderFor(listening, { label: "Also like…", kinds, onPick: add(1) }).root,
    finderFor(listening, { label: "Less like…", kinds, onPick: add(-1) }).root,
  );
}

/** A waveform for selecting a part of the seed. */
function partOf(listening) {
  const { now, sound, answer, context } = listening;
  const root = element("div", "part");
  const made = section("Only a part", root);
  const show = async () => {
    const { WavePart } = await import("../why/wave_part.js");
    const peaks = sound?.peaks ?? (await ask(`songs/${now.seed.song}/peaks`, { library: context.library }).catch(() => []));
    const duration = sound?.duration_s ?? answer?.start?.song.duration_s;
    if (!peaks.length || !duration || !root.isConnected) return;
    const part = new WavePart(root, { onPart: (chosen) => listening.change(states.change(listening.model, { part: chosen }), "comparing this part") });
    part.show({ song: String(now.seed.song ?? now.seed.sound), peaks, duration_s: duration, part: now.part });
  };
  show();
  return made;
}

/** Similar artists, each with a button that plays the artist's songs nearest to the song. */
function artistsOf(listening, song, library) {
  const made = element("details", "section", element("summary", "", "Similar artists"));
  made.addEventListener("toggle", async () => {
    if (!made.open || made.childElementCount > 1) return;
    const wait = element("p", "small", "Looking for similar artists…");
    made.append(wait);
    try {
      const artists = await ask(`api/songs/${song}/artists`, listening.query);
      const lines = artists.map(({ name, songs }) => {
        const titles = songs.map(({ title }) => title).join(" · ");
        const ids = songs.map(({ id }) => id);
        return button(`Play ${name}: ${titles}`, () => listening.player.playSongs(ids, 0, { library, titles: songs }), { className: "item" }, element("b", "", name), `: ${titles}`);
      });
      wait.replaceWith(...(lines.length ? lines : ["This library does not have other artists."]));
    } catch (error) {
      wait.textContent = error instanceof Error ? error.message : String(error);
    }
  });
  return made;
}

/** @param {HTMLElement} panel @param {import("./listening.js").Listening} listening */
export function fillSelection(panel, listening) {
  const { marked: ids, context, player, client } = listening;
  const { library } = context;
  const played = ids.slice(0, MAX_PLAYED);
  const parts = [
    menuItem(played.length < ids.length ? `Play ${played.length} of them` : "Play them", () => player.playSongs(played, 0, { library })),
    menuItem("Add to the queue", () => player.enqueueSongs(played, library)),
    menuItem("Similar songs", () => listening.startLike(ids)),
    menuItem("Playlist around them", () => client.go("playlist", { around: states.sampleEvenly(ids, MAX_AROUND), library })),
    menuItem("Download as CSV", () => saveFile(listening, "api/songs/table", "selection.csv")),
    menuItem("Download as M3U", () => saveFile(listening, "api/songs/file", "selection.m3u8")),
    menuItem("Clear", () => listening.mark([])),
  ];
  panel.replaceChildren(...parts);
  if (context.isOwner) panel.append(tagForm(panel, listening));
}

async function saveFile(listening, address, name) {
  const url = new URL(resolve(address));
  url.searchParams.set("library", listening.context.library);
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify({ songs: listening.marked }) }).catch(() => null);
  if (!answer?.ok) { listening.fail(new Error("The file could not be made. Try again.")); return; }
  const file = URL.createObjectURL(await answer.blob());
  const link = element("a", { href: file, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(file), 60_000);
}

function tagForm(panel, listening) {
  const name = element("input", { type: "text", maxLength: MAX_TAG, placeholder: "Tag", ariaLabel: "Tag" });
  const tag = async (/** @type {boolean} */ trains) => {
    const { marked: songs, context, client, player } = listening;
    if (!name.value.trim()) { name.focus(); return; }
    try {
      await post("api/tags", { tag: name.value.trim(), songs }, { library: context.library });
      player.view?.notify(`${songs.length.toLocaleString("en")} songs have the tag “${name.value.trim()}”.`, "info");
      panel.hidePopover();
      if (trains) client.go("train", { tags: true, library: context.library });
    } catch (error) {
      listening.fail(error);
    }
  };
  const act = (/** @type {string} */ label, /** @type {boolean} */ trains) => button(label, () => tag(trains), { className: "text" }, label);
  return element("div", "line", name, act("Add tag", false), act("Add and train", true));
}
