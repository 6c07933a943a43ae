// The client: a method for each request of PROTOCOL.md.

import { defaultSocket } from "./address.js";
import { Connection, Departed } from "./connection.js";
import { ConnectionLost, RequestFailed, TimedOut } from "./errors.js";
import { REQUESTS, complete } from "./messages.js";

const VERSION = "0.1.0";
const LONGEST_MS = 2 ** 31 - 1; // what a timer of Node holds

/**
 * Asks the daemon, any number of questions at a time on one connection.
 *
 * It connects when it is first asked, and again when the daemon was restarted. All methods reject with errors of errors.js.
 */
export class Client {
  #socket;
  #timeoutMs;
  #connecting = null; // a promise of the connection
  #closing = new AbortController();

  /** `socket`: the daemon's path; `timeoutMs`: of a whole call, null for as long as it takes. */
  constructor({ socket, timeoutMs = 10_000 } = {}) {
    if (timeoutMs !== null && !(timeoutMs > 0 && timeoutMs <= LONGEST_MS)) {
      throw new RangeError(`timeoutMs is null, or more than 0 and at most ${LONGEST_MS}, not ${timeoutMs}`);
    }
    this.#socket = socket || defaultSocket();
    this.#timeoutMs = timeoutMs;
  }

  search(query, options = {}) {
    return this.#ask("search", { query, ...options }, "found");
  }

  get(path, options = {}) {
    return this.#ask("get", { path, ...options }, "note");
  }

  explain(query, options = {}) {
    return this.#ask("explain", { query, ...options }, "explanation");
  }

  files(options = {}) {
    return this.#ask("files", options, "filelist");
  }

  chunks(path, options = {}) {
    return this.#ask("chunks", { path, ...options }, "chunklist");
  }

  turns(path, options = {}) {
    return this.#ask("turns", { path, ...options }, "turnlist");
  }

  sync(options = {}) {
    // The report comes before the time is over, with what is done by then.
    const patience = this.#timeoutMs === null ? undefined : Math.max(0, Math.floor(this.#timeoutMs * 0.95) - 200);
    return this.#ask("sync", { patience_ms: patience, ...options }, "syncreport");
  }

  status(options = {}) {
    return this.#ask("status", options, "statusreport");
  }

  reindex(options = {}) {
    return this.#ask("reindex", options, "reindexreport");
  }

  embed(action, options = {}) {
    return this.#ask("embed", { action, ...options }, "embedreport");
  }

  warm(sessionKey, options = {}) {
    return this.#ask("warm", { session_key: sessionKey, ...options }, "syncreport");
  }

  tags(options = {}) {
    return this.#ask("tags", options, "tagsreport");
  }

  duplicates(options = {}) {
    return this.#ask("duplicates", options, "duplicatelist");
  }

  redact(text, options = {}) {
    return this.#ask("redact", { text, ...options }, "redacted");
  }

  reload() {
    return this.#ask("reload", {}, "reloaded");
  }

  stop() {
    return this.#ask("stop", {}, "stopping");
  }

  /** Ends the connection and all unanswered calls. The client stays closed. */
  close() {
    const closed = new ConnectionLost("This client is closed.");
    this.#closing.abort(closed);
    this.#connecting?.then((connection) => connection.close(closed), () => {});
    this.#connecting = null;
  }

  async #ask(type, fields, answer) {
    const request = checked(type, fields);
    const abort = new AbortController();
    const timer =
      this.#timeoutMs === null ? null : setTimeout(() => abort.abort(new TimedOut(this.#timeoutMs)), this.#timeoutMs);
    try {
      const message = await this.#exchange(request, AbortSignal.any([abort.signal, this.#closing.signal]));
      if (message.type !== answer) {
        throw new RequestFailed("protocol", `The daemon answered with ${message.type} instead of ${answer}.`);
      }
      return complete(answer, message);
    } finally {
      clearTimeout(timer);
    }
  }

  async #exchange(request, signal) {
    try {
      return await (await this.#connection(signal)).ask(request, signal);
    } catch (error) {
      if (!(error instanceof Departed)) throw error;
      if (request.type === "stop") throw new ConnectionLost(error.message);
    }
    try {
      return await (await this.#connection(signal)).ask(request, signal);
    } catch (error) {
      throw error instanceof Departed ? new ConnectionLost(error.message) : error;
    }
  }

  async #connection(signal) {
    for (;;) {
      this.#closing.signal.throwIfAborted();
      if (this.#connecting === null) {
        const connecting = Connection.open(this.#socket, VERSION, signal);
        this.#connecting = connecting;
        connecting.catch(() => {
          if (this.#connecting === connecting) this.#connecting = null;
        });
      }
      const connecting = this.#connecting;
      let connection;
      try {
        connection = await connecting;
      } catch (error) {
        // The call that began to connect ran out of time, and this one has some left.
        if (error instanceof TimedOut && !signal.aborted) continue;
        throw error;
      }
      if (connection.isOpen) return connection;
      if (this.#connecting === connecting) this.#connecting = null;
    }
  }
}

/** The request, with well-formed text and without what is undefined. Throws TypeError for a field that does not exist. */
function checked(type, fields) {
  const request = { type };
  for (const [name, value] of Object.entries(fields)) {
    if (!REQUESTS[type].includes(name)) throw new TypeError(`${type} has no option ${name}`);
    if (value !== undefined) request[name] = typeof value === "string" ? value.toWellFormed() : plain(value);
  }
  return request;
}

/** A moment as the daemon reads it; anything else unchanged. */
function plain(value) {
  return value instanceof Date ? value.toISOString() : value;
}
