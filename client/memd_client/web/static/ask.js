// Asks the server of this page. The secret is in a header: cookies would be sent to, and read by, every port of this machine.

const KEPT = "memd-secret";
const EDITOR = "memd-editor";

export class Refused extends Error {
  constructor(status, { message, hint } = {}) {
    super([message ?? `HTTP ${status}`, hint].filter(Boolean).join(" "));
    this.status = status;
  }
}

/** Exchanges the one-time token of the address, if there is one; false: there is no secret. */
export async function open() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", "/");
    const { secret, editor } = await post("/api/open", { token });
    sessionStorage.setItem(KEPT, secret);
    sessionStorage.setItem(EDITOR, editor);
  }
  return sessionStorage.getItem(KEPT) !== null;
}

/** The name of the editor that notes are opened in. */
export function chosenEditor() {
  return sessionStorage.getItem(EDITOR) ?? "none";
}

export function chooseEditor(name) {
  sessionStorage.setItem(EDITOR, name);
}

async function send(path, body, signal) {
  const headers = { "content-type": "application/json" };
  const secret = sessionStorage.getItem(KEPT);
  if (secret !== null) headers["x-memd-secret"] = secret;
  const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (reply.ok) return reply;
  let said = {};
  try {
    said = await reply.json();
  } catch {
    // What the gate refuses is no JSON.
  }
  throw new Refused(reply.status, said);
}

async function post(path, body, signal) {
  return (await send(path, body, signal)).json();
}

/** A request of the protocol, by its kind and fields. */
export function ask(type, fields = {}, signal = undefined) {
  return post("/api/ask", { type, ...fields }, signal);
}

/** What a checkup finds. */
export function checkup(signal = undefined) {
  return post("/api/doctor", {}, signal);
}

/** A note: its lines, and its blocks as a tree. */
export function note(path, agent, signal = undefined) {
  return post("/api/note", { path, agent }, signal);
}

/** Calls back with the status whenever it comes, until the signal; rejects where the server ends. */
export async function states(take, signal) {
  const reader = (await send("/api/events", {}, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let read = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    read += value;
    const events = read.split("\n\n");
    read = events.pop();
    for (const event of events) take(JSON.parse(event.slice("data: ".length)));
  }
}
