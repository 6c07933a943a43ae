// How memd is, as it changes.

import { checkup, states } from "./ask.js";
import { make, notice, put, shown } from "./dom.js";
import { moment, number, say } from "./words.js";

let looking = null;
let opened = true; // whether the passes are shown

export function close() {
  looking?.abort();
}

export function open() {
  document.getElementById("main").classList.remove("wide");
  const { signal } = (looking = new AbortController());
  put("list", make("p", { class: "about" }, "…"));
  const found = make("ul", { class: "files" });
  const button = make("button", { type: "button", id: "doctor", on: { click: () => check(button, found, signal) } }, say("Check everything"));
  put("pane", button, found);
  states(draw, signal)
    .then(() => notice(say("The server of this page has ended.")))
    .catch((error) => {
      if (error.name !== "AbortError") notice(error.message);
    });
}

async function check(button, place, signal) {
  button.disabled = true;
  place.replaceChildren(make("li", { class: "about" }, "…"));
  try {
    const found = await checkup(signal);
    place.replaceChildren(...found.sort((one, other) => one.ok - other.ok).map(({ name, ok, detail, fix }) => make("li", { class: "finding" },
      make("strong", {}, `${ok ? "✓" : "✗"} ${name}`), " ", make("span", {}, shown(detail)), fix ? remedy(fix) : "")));
  } catch (error) {
    place.replaceChildren();
    if (error.name !== "AbortError") notice(error.message);
  }
  button.disabled = false;
}

function remedy(fix) {
  const copy = make("button", { type: "button", on: { click: () => navigator.clipboard.writeText(fix).catch((error) => notice(error.message)) } }, say("Copy"));
  return make("p", {}, make("code", {}, shown(fix)), " ", copy);
}

function draw(status) {
  if (status.type === "failure") {
    notice([status.message, status.hint].filter(Boolean).join(" "));
    return;
  }
  notice("");
  const memory = status.memory ? [[say("memory"), `${number(status.memory.daemon_mb + (status.memory.worker_mb ?? 0))} MB`]] : [];
  const sent = (status.sent ?? []).map((one) => [
    say("sent so far"), `${one.provider} ${one.model}: ${number(one.texts)} ${say("texts")}, ≈ ${number(one.tokens)} ${say("tokens")}`]);
  put("list",
    table("memd", [[say("version"), status.version], ["socket", status.socket], ...memory, ...(sent.length ? sent : [[say("sent so far"), say("nothing: all stays on this machine")]]),
      ...(status.config_error ? [[say("configuration"), `✗ ${status.config_error}`]] : []),
      ...(status.config_waiting?.length ? [[say("waits for memd-ctl reload"), status.config_waiting.join(", ")]] : []),
      ...problems({ daemon: status.daemon_health, cache: status.cache, synonyms: status.synonyms })]),
    ...Object.entries(status.agents).flatMap(([id, agent]) => [table(id, rows(agent)), pass(agent), latencies(agent.searches), passes(agent.passes ?? [])]));
}

function rows(agent) {
  const waiting = agent.vectors.waiting ?? 0;
  return [
    [say("files"), number(agent.files)], [say("chunks"), number(agent.chunks)],
    [say("vectors"), `${number(agent.vectors.done ?? 0)}${waiting ? `, ${say("waiting")} ${number(waiting)}` : ""}`],
    [say("provider"), [agent.provider, agent.model, agent.endpoint].filter(Boolean).join(" · ")],
    ...(agent.embedding && agent.embedding.state !== "working" ? [[say("embedding"), [agent.embedding.state, agent.embedding.reason].filter(Boolean).join(": ")]] : []),
    ...(agent.dirty ? [[say("changed, not indexed yet"), number(agent.dirty)]] : []),
    ...Object.entries(agent.skipped ?? {}).map(([why, count]) => [say("left out"), `${number(count)}: ${why}`]),
    ...(Object.keys(agent.redacted ?? {}).length ? [[say("redacted"), Object.entries(agent.redacted).map(([kind, count]) => `${kind} ${number(count)}`).join(", ")]] : []),
    ...(agent.rebuild ? [[say("rebuild"), agent.rebuild]] : []),
    ...problems({ keyword: agent.keyword, vector: agent.vector, watcher: agent.watcher, provider: agent.provider_health, store: agent.store }),
  ];
}

/** The pass that is under way. */
function pass({ progress }) {
  if (!progress) return "";
  const told = `${say("reads")} ${number(progress.done)} / ${number(progress.total)}`;
  return make("p", { class: "about" }, told, make("progress", { max: Math.max(progress.total, 1), value: progress.done, aria: { label: told } }));
}

/** The last searches as columns, the newest on the right; those that took long are cut off, and coloured. */
function latencies(searches) {
  const last = searches?.last_ms ?? [];
  if (!last.length) return "";
  const sorted = [...last].sort((one, other) => one - other);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const top = Math.max(4 * searches.median_ms, at(0.95), 1);
  const told = `${say("the last searches")}: ${number(last.length)}; ${say("half within")} ${number(searches.median_ms, 1)} ms, 95 % ${number(at(0.95), 1)} ms, ${say("slowest")} ${number(searches.slowest.took_ms, 1)} ms`;
  const columns = last.map((ms) => {
    const column = make("span", { class: ms > top ? "long" : "", title: `${number(ms, 1)} ms` });
    column.style.height = `${Math.max(2, 100 * Math.min(ms / top, 1))}%`;
    return column;
  });
  const picture = make("div", { class: "latencies", role: "img", aria: { label: told } }, ...columns);
  return make("figure", {}, picture, make("figcaption", { class: "about" }, told));
}

function passes(last) {
  if (!last.length) return "";
  return make("details", { class: "passes", open: opened, on: { toggle: (event) => { opened = event.target.open; } } }, make("summary", {}, say("passes")),
    make("ul", { class: "files" }, ...last.map((one) => make("li", {},
      `${moment(one.at, "medium")} · ${number(one.took_s, 2)} s · ${say("changed")} ${number(one.changed ?? 0)}, ${say("removed")} ${number(one.removed ?? 0)}`,
      one.failed ? make("strong", {}, ` ✗ ${one.failed}`) : ""))));
}

function problems(parts) {
  const wrong = Object.entries(parts).filter(([, health]) => health && health.ok === false);
  return wrong.length ? wrong.map(([part, health]) => [part, health.reason ?? "?"]) : [[say("health"), say("works")]];
}

function table(title, entries) {
  return make("section", {}, make("h2", {}, title), make("table", {}, make("tbody", {},
    ...entries.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, shown(String(value))))))));
}
