// A list of songs: play, search with, reorder, drop. Every text comes from files' tags and is set as
// text, never as markup. What the listener does goes back to Python as one trigger, "action".

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function button(symbol, label, act, disabled = false) {
  const made = element("button", "", symbol);
  made.type = "button";
  made.title = label;
  made.setAttribute("aria-label", label);
  made.disabled = disabled;
  made.addEventListener("click", act);
  return made;
}

function measure(row) {
  const box = element("div", "measure");
  if (row.similarity === null) {
    box.textContent = row.length;
    return box;
  }
  box.append(element("span", "", row.similarity.toFixed(2)));
  box.title = `similarity ${row.similarity.toFixed(3)} of 1`;
  const bar = element("div", "bar");
  const filled = element("i");
  filled.style.width = `${Math.round(100 * row.similarity)}%`;
  bar.append(filled);
  box.append(bar);
  return box;
}

function actions(row, index, data, send) {
  const box = element("div", "actions");
  const name = `“${row.title}”`;
  if (data.editable) {
    const last = data.rows.length - 1;
    box.append(
      button("↑", `Move ${name} up`, () => send("move", index, index - 1), index === 0),
      button("↓", `Move ${name} down`, () => send("move", index, index + 1), index === last),
      button("↻", `Draw again after ${name}`, () => send("redraw", index), index === last),
      button("✕", `Drop ${name}`, () => send("drop", index)),
    );
  } else {
    if (row.can_explain) box.append(button("?", `Why ${name}?`, () => send("why", index)));
    box.append(
      button("≈", `More like ${name}`, () => send("similar", index)),
      button("+", `Add ${name} to the queue`, () => send("enqueue", index)),
    );
  }
  return box;
}

function draggable(item, index, send) {
  item.draggable = true;
  item.addEventListener("dragstart", (event) => {
    event.dataTransfer.setData("application/x-musicsim-row", String(index));
    event.dataTransfer.effectAllowed = "move";
  });
  item.addEventListener("dragover", (event) => {
    event.preventDefault();
    item.classList.add("over");
  });
  item.addEventListener("dragleave", () => item.classList.remove("over"));
  item.addEventListener("drop", (event) => {
    event.preventDefault();
    item.classList.remove("over");
    const from = event.dataTransfer.getData("application/x-musicsim-row");
    if (from !== "" && Number(from) !== index) send("move", Number(from), index);
  });
}

function songRow(row, index, data, send) {
  const item = element("li", "row");
  item.dataset.songId = row.song_id;
  item.dataset.testid = "song-row";
  const play = button("▶", `Play “${row.title}”`, () => send("play", index));
  play.classList.add("play");
  const words = element("div", "words");
  words.append(element("div", "title", row.title), element("div", "sub", row.sub));
  words.title = `${row.title}\n${row.sub}`;
  item.append(element("span", "rank", String(index + 1)), play, words, measure(row), actions(row, index, data, send));
  if (data.editable) draggable(item, index, send);
  return item;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const send = (kind, index, to = -1) =>
    setTriggerValue("action", { kind, index, to, song_id: data.rows[index].song_id });
  const list = element("ol", data.editable ? "list editable" : "list");
  list.dataset.testid = "song-list";
  data.rows.forEach((row, index) => {
    if (row.link) {
      const chip = element("button", "chip", `↓ ${row.link}`);
      chip.type = "button";
      chip.dataset.testid = "transition";
      chip.title = `Why: ${row.link}. Click for the other reasons.`;
      chip.addEventListener("click", () => send("why", index));
      const holder = element("li");
      holder.append(chip);
      list.append(holder);
    }
    list.append(songRow(row, index, data, send));
  });
  parentElement.querySelector("[data-testid=song-list]")?.remove();
  parentElement.append(list);
}
