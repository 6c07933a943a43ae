// One connection: frames out, frames in, and the requests that wait for an answer.

import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { checkOwner, unreachable } from "./address.js";
import { ConnectionLost, ProtocolMismatch, RequestFailed } from "./errors.js";
import { PROTOCOL, complete } from "./messages.js";
import { decode, encode } from "./msgpack.js";

export const REQUEST_LIMIT = 1 << 20; // bytes of a payload to the daemon
const REPLY_LIMIT = 8 << 20; // and from it
const HEADER = 4; // bytes
const QUEUE_FULL_MS = 10; // until the daemon may have accepted another client
const DEEPEST = 500;

/** The connection ended although nothing was wrong with it: the daemon was restarted, and the request may be sent again. */
export class Departed extends Error {}

/** The bytes of a frame. */
export function frame(value) {
  const payload = encode(value, DEEPEST);
  if (payload.length > REQUEST_LIMIT) {
    throw new RequestFailed("too_large", `The request has ${payload.length} bytes, ${REQUEST_LIMIT} are possible.`);
  }
  const bytes = Buffer.alloc(HEADER + payload.length);
  bytes.writeUInt32BE(payload.length);
  bytes.set(payload, HEADER);
  return bytes;
}

/** Cuts what arrives into frames. */
export class FrameReader {
  #pieces = [];
  #length = 0;

  feed(piece) {
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  get isMidway() {
    return this.#length > 0;
  }

  /** The next payload, decoded; undefined until all of it is there. Throws ConnectionLost for what is none. */
  next() {
    if (this.#length < HEADER) return undefined;
    if (this.#pieces[0].length < HEADER) this.#join();
    const length = this.#pieces[0].readUInt32BE();
    if (length > REPLY_LIMIT) throw notMemd(`a frame of ${length} bytes`);
    if (this.#length < HEADER + length) return undefined;
    this.#join();
    const [all] = this.#pieces;
    const rest = all.subarray(HEADER + length);
    this.#pieces = rest.length ? [rest] : [];
    this.#length = rest.length;
    try {
      return { value: decode(all.subarray(HEADER, HEADER + length), DEEPEST) };
    } catch (error) {
      throw notMemd(error.message);
    }
  }

  #join() {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)];
  }
}

/** A socket with a daemon at its other end, after both have greeted. Whatever goes wrong on it closes it. */
export class Connection {
  #socket;
  #frames = new FrameReader();
  #waiting = new Map(); // id -> { resolve, reject }
  #lastId = 0;
  #hasAnswered = false;
  #end = null; // why it is closed

  constructor(socket) {
    this.#socket = socket;
  }

  /** Connects and greets. `signal` ends the attempt. */
  static async open(path, version, signal) {
    await checkOwner(path);
    const socket = await dial(path, signal);
    const made = new Connection(socket);
    const stop = () => made.close(signal.reason);
    signal.addEventListener("abort", stop);
    try {
      await made.#greet(version);
    } finally {
      signal.removeEventListener("abort", stop);
    }
    return made;
  }

  get isOpen() {
    return this.#end === null;
  }

  /** The answer to a request; an aborted one is forgotten, and its answer is ignored. */
  async ask(request, signal) {
    if (this.#end) throw this.#end;
    const id = this.#lastId + 1;
    const bytes = frame([id, request]);
    this.#lastId = id;
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        this.#socket.ref();
        this.#socket.write(bytes);
      });
    } finally {
      this.#waiting.delete(id);
      // A program may end while its connection is silent.
      if (this.#waiting.size === 0) this.#socket.unref();
    }
  }

  /** Ends the connection, and all requests on it with the error. */
  close(error) {
    if (this.#end) return;
    this.#end = error;
    this.#socket.destroy();
    for (const { reject } of this.#waiting.values()) reject(error);
  }

  #greet(version) {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      this.#waiting.set(0, { resolve, reject });
      socket.on("data", (piece) => {
        this.#frames.feed(piece);
        try {
          for (let next; this.isOpen && (next = this.#frames.next()) !== undefined; ) this.#take(next.value);
        } catch (error) {
          this.close(error);
        }
      });
      socket.on("error", () => this.close(this.#broken()));
      socket.on("close", () => this.close(this.#broken()));
      socket.write(frame({ type: "hello", protocol: PROTOCOL, version }));
    });
  }

  #take(value) {
    const greeting = this.#waiting.get(0);
    if (Array.isArray(value)) {
      const [id, message] = value;
      if (id === 0) throw isMessage(message, "failure") ? failed(message) : notMemd("a message under id 0");
      if (greeting || !isMessage(message)) throw notMemd("an answer that is no message");
      this.#hasAnswered = true;
      const waiting = this.#waiting.get(id);
      if (message.type === "failure") waiting?.reject(failed(message));
      else waiting?.resolve(message);
      return;
    }
    if (!greeting || !isMessage(value, "hello")) throw notMemd("no greeting");
    if (value.protocol !== PROTOCOL) throw new ProtocolMismatch(PROTOCOL, value.protocol);
    this.#waiting.delete(0);
    greeting.resolve();
  }

  #broken() {
    if (this.#waiting.has(0)) return new ConnectionLost("The daemon closed the connection without a greeting.");
    if (this.#frames.isMidway) return new ConnectionLost("The connection to the daemon broke in the middle of an answer.");
    const message = "The daemon closed the connection without an answer.";
    return this.#hasAnswered ? new Departed(message) : new ConnectionLost(message);
  }
}

/** A connected socket. If too many clients wait to be accepted, it tries again until the signal ends it. */
async function dial(path, signal) {
  for (;;) {
    signal.throwIfAborted();
    const socket = connect(path);
    const stop = () => socket.destroy(signal.reason);
    signal.addEventListener("abort", stop);
    try {
      await once(socket, "connect");
      return socket;
    } catch (error) {
      signal.throwIfAborted();
      if (error.code !== "EAGAIN") throw unreachable(path, error);
    } finally {
      signal.removeEventListener("abort", stop);
    }
    await sleep(QUEUE_FULL_MS);
  }
}

function isMessage(value, type) {
  const found = value !== null && typeof value === "object" ? value.type : undefined;
  return type === undefined ? typeof found === "string" : found === type;
}

function failed(message) {
  const { code, message: text, hint } = complete("failure", message);
  return new RequestFailed(code, text, hint);
}

function notMemd(what) {
  return new ConnectionLost(`What answers is no memd daemon, or a broken one: it sent ${what}.`);
}
