// Search as one types: each question takes the place of the one before.

import { ask } from "./ask.js";
import { read } from "./browse.js";
import { make, notice, put, shown, words } from "./dom.js";
import { day, number, say } from "./words.js";

const PAUSE_MS = 120; // after a key, before the daemon is asked
const BARS = [["meaning", "by meaning"], ["by_words", "by words"]];
const SAID = [["of_time", "of its time"], ["superseded", "superseded"], ["repeats", "repeats the question"]];

const fields = {};
let asking = null; // what ends the question before
let timer = 0;
let hits = [];
let chosen = -1;

export function open(agent) {
  document.getElementById("main").classList.remove("wide");
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => search(agent()), PAUSE_MS);
  };
  const field = (name, label, more = {}) => {
    const input = make("input", { id: name, value: fields[name] ?? "", on: { input: later }, ...more });
    return make("label", {}, say(label), input);
  };
  const query = make("input", {
    id: "query", type: "search", autocomplete: "off", spellcheck: false, maxLength: 2000, value: fields.query ?? "",
    placeholder: say("Question"), on: { input: later }, aria: { label: say("Question") },
  });
  const source = make("select", { id: "source", on: { change: later } },
    ...[["", "All"], ["memory", "Notes"], ["sessions", "Conversations"]].map(
      ([value, label]) => make("option", { value, selected: fields.source === value }, say(label))));
  put("list",
    make("form", { role: "search", on: { submit: (event) => event.preventDefault() } }, query,
      make("div", { class: "filters" }, make("label", {}, say("Source"), source),
        field("since", "Since", { placeholder: "7d, 2026-02" }), field("until", "Until"),
        field("tag", "Tag"), field("path", "Path", { placeholder: "memory/**" }))),
    make("p", { id: "about", class: "about", role: "status" }), make("ol", { id: "hits", class: "hits" }));
  put("pane", make("p", { class: "about" }, say("Select something to read it here.")));
  query.focus();
  if (query.value) search(agent());
}

function question(agent) {
  for (const name of ["query", "source", "since", "until", "tag", "path"]) fields[name] = document.getElementById(name).value;
  const wanted = { query: fields.query, agent };
  for (const name of ["source", "since", "until"]) if (fields[name].trim()) wanted[name] = fields[name].trim();
  wanted.only = [
    ...fields.tag.split(/[\s,]+/).filter(Boolean).map((tag) => `tag:${tag}`),
    ...fields.path.split(/\s+/).filter(Boolean).map((path) => `path:${path}`),
  ];
  return wanted;
}

async function search(agent) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const wanted = question(agent);
  if (!wanted.query.trim()) {
    put("hits");
    return;
  }
  try {
    const found = await ask("search", { ...wanted, max_results: 20, max_chars: 0 }, signal);
    notice("");
    draw(found, wanted);
  } catch (error) {
    if (error.name !== "AbortError") notice(error.message);
  }
}

function draw(found, wanted) {
  hits = found.results ?? [];
  chosen = -1;
  document.getElementById("others")?.remove();
  const lit = words(wanted.query);
  const degraded = (found.degraded ?? []).map(({ part, reason }) => `${say("missing just now")}: ${part} (${reason})`);
  if (found.stale) degraded.unshift(say("The results may lack what was written a moment ago."));
  put("about", hits.length ? "" : say("Nothing was found."), ...degraded.map((one) => make("span", {}, ` ${one}`)),
    hits.length ? make("button", { type: "button", id: "why", on: { click: () => explain(wanted) } }, say("Why")) : "");
  put("hits", ...hits.map((hit, at) => make("li", { class: hit.superseded ? "old" : "" },
    make("button", { type: "button", class: "entry", on: { click: () => choose(at, wanted) } },
      make("span", { class: "where" }, make("bdi", {}, shown(hit.path)), `:${hit.start_line}–${hit.end_line}`), " ",
      make("span", { class: "about" }, about(hit)),
      make("span", { class: "text" }, shown(hit.snippet, lit))))));
}

function about(hit) {
  return [
    hit.date ? day(hit.date) : "", say(hit.source === "sessions" ? "Conversations" : "Notes"),
    `${say("score")} ${number(hit.score, 2)}`, hit.weak ? say("weak") : "",
    hit.superseded ? [say("superseded"), hit.superseded_by].filter(Boolean).join(" → ") : "",
    hit.copies?.length ? `${say("also in")} ${hit.copies.join(", ")}` : "",
  ].filter(Boolean).join(" · ");
}

function choose(at, wanted) {
  chosen = Math.max(0, Math.min(at, hits.length - 1));
  const entries = [...document.querySelectorAll("#hits .entry")];
  entries.forEach((entry, each) => (each === chosen ? entry.setAttribute("aria-current", "true") : entry.removeAttribute("aria-current")));
  entries[chosen]?.focus();
  const hit = hits[chosen];
  if (hit) read({ path: hit.path, source: hit.source ?? "memory" }, wanted.agent, [hit.start_line, hit.end_line], words(wanted.query));
}

/** The arrows go through the hits; false: this key is none of theirs. */
export function key(event, agent) {
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || !hits.length || event.target.tagName === "SELECT") return false;
  choose(chosen + (event.key === "ArrowDown" ? 1 : -1), question(agent));
  return true;
}

async function explain(wanted) {
  try {
    const told = await ask("explain", { ...wanted, max_results: 20 });
    const entries = [...document.querySelectorAll("#hits > li")];
    const rest = make("ul", { class: "files" });
    for (const one of told.candidates ?? []) {
      const at = one.cut ? -1 : hits.findIndex((hit) => hit.path === one.path && one.window?.[0] <= hit.end_line && hit.start_line <= one.window?.[1]);
      if (at >= 0 && !entries[at].querySelector(".why")) entries[at].append(bars(one));
      else rest.append(make("li", {}, make("bdi", {}, shown(one.path)), `:${one.start_line}–${one.end_line}`, bars(one)));
    }
    document.getElementById("others")?.remove();
    rest.id = "others";
    document.getElementById("hits").after(rest);
  } catch (error) {
    notice(error.message);
  }
}

function bars(one) {
  const rows = BARS.flatMap(([field, label]) => [
    make("span", {}, say(label)),
    make("progress", { max: 2, value: Math.min(one[field] ?? 0, 2), aria: { label: say(label) } }),
    make("span", {}, number(one[field] ?? 0, 2)),
  ]);
  const said = [
    ...SAID.filter(([field]) => one[field]).map(([, label]) => say(label)),
    one.foreign ? `${say("in another script")} ${number(one.foreign, 2)}` : "",
    one.cut ? `${say("cut by")} ${one.cut}` : "",
    (one.terms ?? []).join(", "),
  ].filter(Boolean).join(" · ");
  return make("div", { class: "why" }, ...rows, make("span"), make("span", {}, shown(said)), make("span", {}, `${say("score")} ${number(one.score, 2)}`));
}
