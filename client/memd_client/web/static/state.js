// How memd is, as it changes.

import { checkup, states } from "./ask.js";
import { make, notice, put, shown } from "./dom.js";
import { moment, number, say } from "./words.js";

let looking = null;

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
  put("list",
    table("memd", [["version", status.version], ["socket", status.socket], ...memory, ...problems({ daemon: status.daemon_health, cache: status.cache })]),
    ...Object.entries(status.agents).map(([id, agent]) => table(id, rows(agent))));
}

function rows(agent) {
  const waiting = agent.vectors.waiting ?? 0;
  return [
    [say("files"), number(agent.files)], [say("chunks"), number(agent.chunks)],
    [say("vectors"), `${number(agent.vectors.done ?? 0)}${waiting ? `, ${say("waiting")} ${number(waiting)}` : ""}`],
    [say("provider"), [agent.provider, agent.model, agent.endpoint].filter(Boolean).join(" · ")],
    ...(agent.last_pass ? [[say("last pass"), `${moment(agent.last_pass.at)}, ${number(agent.last_pass.took_s, 2)} s`]] : []),
    ...(agent.searches ? [[say("searches, median"), `${number(agent.searches.median_ms, 1)} ms (${number(agent.searches.count)}); ${say("slowest")} ${number(agent.searches.slowest.took_ms, 1)} ms`]] : []),
    ...(Object.keys(agent.redacted ?? {}).length ? [[say("redacted"), Object.entries(agent.redacted).map(([kind, count]) => `${kind} ${number(count)}`).join(", ")]] : []),
    ...(agent.rebuild ? [["rebuild", agent.rebuild]] : []),
    ...problems({ keyword: agent.keyword, vector: agent.vector, watcher: agent.watcher, provider: agent.provider_health, store: agent.store }),
  ];
}

function problems(parts) {
  const wrong = Object.entries(parts).filter(([, health]) => health && health.ok === false);
  return wrong.length ? wrong.map(([part, health]) => [part, health.reason ?? "?"]) : [[say("health"), say("works")]];
}

function table(title, entries) {
  return make("section", {}, make("h2", {}, title), make("table", {}, make("tbody", {},
    ...entries.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, String(value)))))));
}
