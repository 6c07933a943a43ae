// Files by folder and by day, and one of them to read: a note, its lines or its chunks; a transcript as a conversation.

import { ask, chosenEditor, note } from "./ask.js";
import { built, lacking, make, notice, put, shown } from "./dom.js";
import { day, moment, number, say } from "./words.js";

// How each editor is told to open a file at a line. Obsidian opens it at its top.
const EDITORS = {
  vscode: (path, line) => `vscode://file${path}:${line}`,
  cursor: (path, line) => `cursor://file${path}:${line}`,
  zed: (path, line) => `zed://file${path}:${line}`,
  idea: (path, line) => `idea://open?file=${path}&line=${line}`,
  obsidian: (path) => `obsidian://open?path=${encodeURIComponent(decodeURIComponent(path))}`,
};

export const EDITOR_NAMES = {
  vscode: "VS Code", cursor: "Cursor", zed: "Zed", idea: "IntelliJ IDEA", obsidian: "Obsidian", none: "None",
};

let way = "folder";
let workspaces = {}; // by agent
let reading = null; // what ends the reading before
let listing = null; // likewise
let lastDay = null; // of the files by day that are listed

/** The signal of a new list: an answer for the one before draws nothing any more. */
function listed() {
  listing?.abort();
  listing = new AbortController();
  return listing.signal;
}

/** Where the notes of each agent are, by its id. */
export function placed(byAgent) {
  workspaces = byAgent;
}

/** The link that opens a note in an editor, at a line; nothing where no editor is chosen. */
function editor(path, agent, line) {
  const address = EDITORS[chosenEditor()];
  if (!address) return "";
  const place = path.startsWith("/") ? path : `${workspaces[agent] ?? ""}/${path}`;
  return make("a", { class: "editor", href: address(place.split("/").map(encodeURIComponent).join("/"), line) }, say("Open in the editor"));
}

export function close() {
  listing?.abort();
}

export function open(agent) {
  document.getElementById("main").classList.remove("wide");
  const choice = (value, label) => make("button", {
    type: "button", on: { click: () => { way = value; open(agent); } }, aria: { pressed: String(way === value) },
  }, say(label));
  put("list", make("div", { class: "tools" }, choice("folder", "Folders"), choice("day", "Days"), choice("pairs", "Duplicates")),
    make("div", { id: "crumbs", class: "crumbs" }), make("ul", { id: "files", class: "files" }));
  put("pane", make("p", { class: "about" }, say("Select something to read it here.")));
  if (way === "pairs") pairs(agent());
  else list(agent(), way === "folder" ? { folder: "" } : { sort: "time" });
}

/** What is superseded, and what says the same as another. */
async function pairs(agent) {
  put("files", make("li", { class: "about" }, "…"));
  try {
    const found = await ask("duplicates", { agent }, listed());
    notice("");
    const place = (lines) => (lines.start_line ? `${lines.path}:${lines.start_line}–${lines.end_line}` : lines.path);
    put("files", ...(found.pairs ?? []).map((pair) => entry(
      place(pair.one), `${say(pair.why)} → ${pair.other ? place(pair.other) : (pair.by ?? "?")}`, () => compare(pair, agent))),
      (found.pairs ?? []).length ? "" : make("li", { class: "about" }, say("No note says what another does.")),
      found.more ? make("li", { class: "about" }, say("There are more.")) : "");
  } catch (error) {
    if (error.name !== "AbortError") notice(error.message);
  }
}

/** Both notes of a pair beside each other, with the words lit that the other lacks. */
async function compare(pair, agent) {
  reading?.abort();
  const { signal } = (reading = new AbortController());
  try {
    const both = [pair.one, pair.other].filter(Boolean);
    const notes = await Promise.all(both.map((one) => note(one.path, agent, signal)));
    const texts = notes.map((found, at) => (both[at].start_line ? found.lines.slice(both[at].start_line - 1, both[at].end_line) : found.lines).join("\n"));
    const columns = both.map((one, at) => make("section", {},
      make("h2", {}, make("bdi", {}, shown(one.path))), editor(one.path, agent, one.start_line ?? 1),
      make("div", { class: "note" }, built(notes[at].tree, lacking(texts[at], texts[1 - at] ?? texts[at]), one.start_line ? [one.start_line, one.end_line] : null))));
    const pane = put("pane", make("div", { class: "tools" }, make("strong", {}, say(pair.why)), pair.by ? make("span", {}, shown(`→ ${pair.by}`)) : ""),
      make("div", { class: "pair" }, ...columns));
    notice("");
    if (pane.offsetTop > innerHeight / 2) pane.scrollIntoView();
  } catch (error) {
    if (error.name !== "AbortError") notice(error.message);
  }
}

async function list(agent, wanted, after = null) {
  const signal = listed();
  if (after === null) lastDay = null;
  try {
    const page = await ask("files", { agent, ...wanted, after }, signal);
    notice("");
    const entries = [
      ...Object.entries(page.folders ?? {}).map(([path, count]) => entry(
        path.slice((wanted.folder ?? "").length), `${say("files")}: ${number(count)}`, () => list(agent, { folder: path }))),
      ...(page.files ?? []).flatMap((file) => [
        ...(wanted.folder === undefined ? dated(file) : []),
        entry(file.path.slice((wanted.folder ?? "").length), told(file), () => read(file, agent))]),
    ];
    if (page.next) {
      const more = make("li", {}, make("button", { type: "button", on: { click: () => { more.remove(); list(agent, wanted, page.next); } } }, say("More")));
      entries.push(more);
    }
    const place = document.getElementById("files");
    if (after === null) put("files", ...entries);
    else {
      place.append(...entries);
      entries[0]?.querySelector("button").focus();
    }
    crumbs(agent, wanted);
  } catch (error) {
    if (error.name !== "AbortError") notice(error.message);
  }
}

/** The heading of a day, before the first file of it. */
function dated(file) {
  const date = (file.date ?? "").split("/").pop();
  if (date === lastDay) return [];
  lastDay = date;
  return [make("li", {}, make("h2", { class: "day" }, date ? day(date) : say("without a date")))];
}

function crumbs(agent, wanted) {
  if (wanted.folder === undefined) return;
  const folders = ["", ...[...wanted.folder.matchAll(/\//g)].map(({ index }) => wanted.folder.slice(0, index + 1))];
  put("crumbs", ...folders.map((path, at) => make("button", { type: "button", on: { click: () => list(agent, { folder: path }) } },
    at ? shown(path.slice(folders[at - 1].length)) : say("Top"))));
}

function entry(name, about, act) {
  return make("li", {}, make("button", { type: "button", class: "entry", on: { click: act } },
    make("bdi", { class: "where" }, shown(name)), " ", make("span", { class: "about" }, shown(about))));
}

function told(file) {
  return [
    file.date ? day(file.date) : "", `${number(file.size ?? 0)} ${say("bytes")}`, `${say("chunks")}: ${number(file.chunks ?? 0)}`,
    file.superseded ? [say("superseded"), file.superseded_by].filter(Boolean).join(" → ") : "",
    ...(file.tags ?? []).map((tag) => `#${tag}`),
  ].filter(Boolean).join(" · ");
}

/** Shows a file in the pane, with the lines of a hit. */
export async function read(file, agent, hit = null, lit = null) {
  reading?.abort();
  const { signal } = (reading = new AbortController());
  const head = make("h2", {}, make("bdi", {}, shown(file.path)));
  const place = make("div", { class: "note" });
  const show = async (draw) => {
    try {
      await draw(place);
      notice("");
      place.querySelector(".hit")?.scrollIntoView({ block: "center" });
      // On a narrow screen it is below the list.
      if (!hit && pane.offsetTop > innerHeight / 2) pane.scrollIntoView();
    } catch (error) {
      if (error.name !== "AbortError") notice(error.message);
    }
  };
  const isSession = file.source === "sessions";
  const ways = isSession
    ? [["Conversations", () => turns(place, file, agent, hit, lit, signal)], ["Chunks", () => chunks(place, file, agent, hit, lit, signal)]]
    : [["Page", () => page(place, file, agent, hit, lit, signal)], ["Lines", () => lines(place, file, agent, hit, lit, signal)],
      ["Chunks", () => chunks(place, file, agent, hit, lit, signal)]];
  const tools = make("div", { class: "tools" });
  const pick = (at) => {
    [...tools.children].forEach((button, each) => button.setAttribute("aria-pressed", String(each === at)));
    show(ways[at][1]);
  };
  tools.append(...ways.map(([label], at) => make("button", { type: "button", on: { click: () => pick(at) } }, say(label))));
  const pane = put("pane", head, isSession ? "" : editor(file.path, agent, hit ? hit[0] : 1), tools, place);
  pick(0);
}

async function whole(file, agent, signal) {
  const found = await note(file.path, agent, signal);
  return [found, [found.missing ? say("not indexed") : "", found.more ? say("The file is longer than is shown.") : ""].join("")];
}

async function page(place, file, agent, hit, lit, signal) {
  const [found, warning] = await whole(file, agent, signal);
  place.replaceChildren(make("p", { class: "about" }, warning), built(found.tree, lit, hit));
}

async function lines(place, file, agent, hit, lit, signal) {
  const [found, warning] = await whole(file, agent, signal);
  const rows = found.lines.flatMap((line, at) => {
    const isHit = hit && at + 1 >= hit[0] && at + 1 <= hit[1];
    return [make("span", { class: "number" }, String(at + 1)), make("span", { class: isHit ? "text hit" : "text" }, shown(line, lit))];
  });
  place.replaceChildren(make("p", { class: "about" }, warning), make("div", { class: "lines" }, ...rows));
}

async function chunks(place, file, agent, hit, lit, signal, skip = 0) {
  const found = await ask("chunks", { path: file.path, agent, skip }, signal);
  const redacted = Object.entries(found.redacted ?? {}).map(([kind, count]) => `${kind}: ${number(count)}`);
  const shownChunks = (found.chunks ?? []).map((chunk) => make("section", { class: "chunk" },
    make("p", { class: "about" }, `${chunk.start_line}–${chunk.end_line}`,
      ` · ${say(chunk.vector ?? "waiting")}`),
    chunk.context ? make("p", { class: "about text" }, shown(chunk.context)) : null,
    make("p", { class: hit && chunk.start_line <= hit[1] && chunk.end_line >= hit[0] ? "text hit" : "text" }, windowed(chunk, lit))));
  if (skip === 0) place.replaceChildren(make("p", { class: "about" }, found.missing ? say("not indexed") : "",
    redacted.length ? `${say("what was taken out")}: ${redacted.join(", ")}` : ""));
  place.append(...shownChunks);
  further(place, found.next, (next) => chunks(place, file, agent, hit, lit, signal, next));
}

/** The text of a chunk; where a window of it begins, its lines are named. */
function windowed(chunk, lit) {
  const nodes = document.createDocumentFragment();
  const windows = chunk.windows ?? [];
  chunk.text.split("\n").forEach((line, at, all) => {
    for (const [first, last] of windows) {
      if (first === chunk.start_line + at) nodes.append(make("span", { class: "window" }, `${say("window")} ${first}–${last}`));
    }
    nodes.append(shown(at + 1 < all.length ? `${line}\n` : line, lit));
  });
  return nodes;
}

async function turns(place, file, agent, hit, lit, signal, skip = 0) {
  const found = await ask("turns", { path: file.path, agent, skip, max_turns: 100 }, signal);
  if (skip === 0) place.replaceChildren(make("p", { class: "about" }, found.missing ? say("not indexed") : ""));
  place.append(...(found.turns ?? []).map((turn) => {
    const isHit = hit && turn.start_line <= hit[1] && turn.end_line >= hit[0];
    return make("article", { class: `turn ${turn.role === "user" ? "user" : "assistant"}${isHit ? " hit" : ""}` },
      make("p", { class: "about" }, [say(turn.role), turn.at === undefined || turn.at === null ? "" : moment(turn.at)].filter(Boolean).join(" · ")),
      make("p", { class: "text" }, shown(turn.text, lit)), turn.cut ? make("p", { class: "about" }, say("The file is longer than is shown.")) : null);
  }));
  // A hit further on is looked for: what one came for is shown.
  const isBefore = hit && found.next && (found.turns ?? []).every((turn) => turn.end_line < hit[0]);
  if (isBefore) await turns(place, file, agent, hit, lit, signal, found.next);
  else further(place, found.next, (next) => turns(place, file, agent, hit, lit, signal, next));
}

function further(place, next, go) {
  if (next === undefined || next === null) return;
  const more = make("button", { type: "button", on: { click: () => { more.remove(); go(next).catch((error) => notice(error.message)); } } }, say("More"));
  place.append(more);
}
