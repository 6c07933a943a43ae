// The page: opens it with the token of its address, and shows one view at a time.

import { ask, chooseEditor, chosenEditor, open as unlock } from "./ask.js";
import * as browse from "./browse.js";
import { make, notice, put } from "./dom.js";
import * as search from "./search.js";
import * as state from "./state.js";
import { language, say } from "./words.js";

const VIEWS = { Search: search, Browse: browse, State: state };
let current = "Search";

const agent = () => document.getElementById("agent").value || null;

function show(name) {
  state.close();
  browse.close();
  current = name;
  notice("");
  put("nav", ...Object.keys(VIEWS).map((each) => {
    const button = make("button", { type: "button", on: { click: () => show(each) } }, say(each));
    if (each === name) button.setAttribute("aria-current", "page");
    return button;
  }));
  VIEWS[name].open(agent);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key === "/" && !isTyping) {
    if (current !== "Search") show("Search");
    document.getElementById("query").focus();
    event.preventDefault();
  } else if (event.key === "o" && !isTyping) {
    document.querySelector("#pane .editor")?.click();
  } else if (current === "Search" && search.key(event, agent())) {
    event.preventDefault();
  } else if (event.key === "Escape") {
    document.getElementById("query")?.focus();
  }
}

async function start() {
  document.documentElement.lang = language;
  put("agent-label", say("Agent"));
  if (!(await unlock())) {
    notice(say("Open this page with `memd-ctl web`; an address opens it once, for a minute."));
    return;
  }
  const { agents } = await ask("status");
  browse.placed(Object.fromEntries(Object.entries(agents).map(([id, each]) => [id, each.workspace])));
  put("agent", ...Object.keys(agents).map((id) => make("option", { value: id }, id)));
  document.getElementById("agent").addEventListener("change", () => show(current));
  put("editor-label", say("Editor"));
  const editors = put("editor", ...Object.entries(browse.EDITOR_NAMES).map(([value, name]) => make("option", { value, selected: value === chosenEditor() }, say(name))));
  editors.addEventListener("change", () => {
    chooseEditor(editors.value);
    show(current);
  });
  document.addEventListener("keydown", keys);
  show(current);
  performance.mark("memd-shown"); // one can type: python -m tests.benchmarks reads it
}

start().catch((error) => notice(error.message));
