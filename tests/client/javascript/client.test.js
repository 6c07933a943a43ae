// The client against a scripted server: what PROTOCOL.md asks of both ends.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { frame, FrameReader, REQUEST_LIMIT } from "../../../client/javascript/connection.js";
import { encode } from "../../../client/javascript/msgpack.js";
import { Client, ConnectionLost, DaemonNotRunning, MemdClientError, PROTOCOL, ProtocolMismatch, RequestFailed, TimedOut } from "../../../client/javascript/index.js";

const HELLO = { type: "hello", protocol: PROTOCOL, version: "9" };

let directory;
let path;
let servers;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "memd-"));
  path = join(directory, "s");
  servers = [];
});

afterEach(async () => {
  for (const server of servers) await ended(server);
  await rm(directory, { recursive: true });
});

/** Listens; `answer(request, connection)` is called with each envelope. */
async function serve(answer, { hello = HELLO } = {}) {
  const server = createServer((socket) => {
    const frames = new FrameReader();
    const connection = { send: (value) => socket.write(frame(value)), raw: (bytes) => socket.write(bytes), end: () => socket.destroy(), finish: () => socket.end() };
    server.sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (piece) => {
      frames.feed(piece);
      for (let next; (next = frames.next()) !== undefined; ) {
        if (Array.isArray(next.value)) answer(next.value, connection);
        else if (hello) connection.send(hello);
      }
    });
  });
  server.sockets = [];
  await new Promise((resolve) => server.listen(path, resolve));
  servers.push(server);
  return server;
}

function ended(server) {
  for (const socket of server.sockets) socket.destroy();
  return new Promise((resolve) => server.close(resolve));
}

const found = (snippet) => ({ type: "found", results: [{ path: "MEMORY.md", start_line: 1, end_line: 1, score: 0.5, snippet }] });
const echo = ([id, { query }], connection) => connection.send([id, found(query)]);

async function withClient(act, options = {}) {
  const client = new Client({ socket: path, ...options });
  try {
    return await act(client);
  } finally {
    client.close();
  }
}

test("an answer has the defaults of what the daemon left out", async () => {
  await serve(echo);
  const answer = await withClient((client) => client.search("数据库?"));
  assert.equal(answer.results[0].snippet, "数据库?");
  assert.equal(answer.results[0].source, "memory");
  assert.equal(answer.backend, "builtin");
  assert.deepEqual(answer.degraded, []);
});

test("notes that say the same come in pairs", async () => {
  const asked = [];
  await serve(([id, request], connection) => {
    asked.push(request);
    connection.send([id, { type: "duplicatelist", pairs: [{ why: "copy", one: { path: "a.md" } }] }]);
  });
  const answer = await withClient((client) => client.duplicates({ agent: "work" }));
  assert.deepEqual(asked, [{ type: "duplicates", agent: "work" }]);
  assert.equal(answer.pairs[0].one.path, "a.md");
  assert.equal(answer.more, false);
});

test("answers may come in any order", async () => {
  const waiting = [];
  await serve((request, connection) => {
    waiting.push(request);
    if (waiting.length === 3) for (const each of waiting.reverse()) echo(each, connection);
  });
  const answers = await withClient((client) => Promise.all(["a", "b", "c"].map((query) => client.search(query))));
  assert.deepEqual(answers.map((answer) => answer.results[0].snippet), ["a", "b", "c"]);
});

test("all questions share one connection", async () => {
  const server = await serve(echo);
  await withClient((client) => Promise.all(Array.from({ length: 200 }, (_, n) => client.search(`${n}`))));
  assert.equal(server.sockets.length, 1);
});

test("a restarted daemon is asked again, once", async () => {
  let asked = 0;
  await serve((request, connection) => {
    asked += 1;
    if (asked === 2) connection.end();
    else echo(request, connection);
  });
  await withClient(async (client) => {
    await client.search("first");
    assert.equal((await client.search("second")).results[0].snippet, "second");
  });
  assert.equal(asked, 3);
});

test("a daemon that stopped between two questions is found again", async () => {
  const first = await serve(echo);
  await withClient(async (client) => {
    await client.search("first");
    await ended(first);
    servers.pop();
    await assert.rejects(client.search("nobody"), DaemonNotRunning);
    await serve(echo);
    assert.equal((await client.search("second")).results[0].snippet, "second");
  });
});

test("a daemon that always hangs up is given up", async () => {
  let asked = 0;
  await serve((_, connection) => {
    asked += 1;
    connection.end();
  });
  await withClient((client) => assert.rejects(client.search("x"), ConnectionLost));
  assert.equal(asked, 1);
});

test("stop is not sent twice", async () => {
  let stops = 0;
  await serve((request, connection) => {
    if (request[1].type !== "stop") return echo(request, connection);
    stops += 1;
    connection.end();
  });
  await withClient(async (client) => {
    await client.search("x");
    await assert.rejects(client.stop(), ConnectionLost);
  });
  assert.equal(stops, 1);
});

test("a failure has its code and its hint", async () => {
  await serve(([id], connection) => connection.send([id, { type: "failure", code: "unknown_agent", message: "No.", hint: "Yes?" }]));
  await withClient((client) =>
    assert.rejects(client.search("x"), (error) => error instanceof RequestFailed && error.code === "unknown_agent" && error.hint === "Yes?"),
  );
});

test("an answer that takes too long is ignored when it comes", async () => {
  const late = [];
  await serve((request, connection) => {
    if (request[1].query === "slow") late.push(() => echo(request, connection));
    else {
      for (const send of late.splice(0)) send();
      echo(request, connection);
    }
  });
  await withClient(
    async (client) => {
      await assert.rejects(client.search("slow"), TimedOut);
      assert.equal((await client.search("quick")).results[0].snippet, "quick");
    },
    { timeoutMs: 300 },
  );
});

test("a daemon that does not greet is waited for no longer than the timeout", async () => {
  await serve(echo, { hello: null });
  await withClient((client) => assert.rejects(client.search("x"), TimedOut), { timeoutMs: 200 });
});

test("another protocol is named", async () => {
  await serve(echo, { hello: { ...HELLO, protocol: PROTOCOL + 1 } });
  await withClient((client) => assert.rejects(client.search("x"), ProtocolMismatch));
});

test("a failure in place of the greeting is told", async () => {
  await serve(echo, { hello: [0, { type: "failure", code: "protocol", message: "Go away." }] });
  await withClient((client) => assert.rejects(client.search("x"), /Go away/));
});

for (const [name, bytes] of [
  ["a frame of 2 GB", Buffer.from("7fffffff", "hex")],
  ["what is no msgpack", Buffer.from("00000001c1", "hex")],
  ["two values in a frame", Buffer.from("000000020101", "hex")],
  ["an answer without a type", frame([1, {}])],
  ["an HTTP server", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
]) {
  test(`${name} ends the connection, and the client lives on`, async () => {
    let isFirst = true;
    await serve((request, connection) => {
      if (isFirst) connection.raw(bytes);
      else echo(request, connection);
      isFirst = false;
    });
    await withClient(async (client) => {
      await assert.rejects(client.search("x"), ConnectionLost);
      assert.equal((await client.search("y")).results[0].snippet, "y");
    });
  });
}

const whole = (id, text) => frame([id, found(text)]);
const header = (length) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  return bytes;
};

for (const [name, send, error] of [
  ["half a header", (connection) => connection.raw(Buffer.from("0000", "hex")), /middle of an answer/],
  ["half an answer", (connection, id) => connection.raw(whole(id, "x").subarray(0, 20)), /middle of an answer/],
  ["an answer to somebody else and half of its own", (connection, id) => connection.raw(Buffer.concat([whole(id + 7, "x"), whole(id, "y").subarray(0, 9)])), /middle of an answer/],
  ["a frame that is one byte too long", (connection) => connection.raw(header((8 << 20) + 1)), /a frame of 8388609 bytes/],
  ["a failure for the whole connection", (connection) => connection.send([0, { type: "failure", code: "busy", message: "Too many." }]), /Too many/],
  ["a message for the whole connection", (connection) => connection.raw(whole(0, "x")), /a message under id 0/],
  ["a second greeting", (connection) => connection.send(HELLO), /no greeting/],
  ["a list that ends too early", (connection) => connection.raw(Buffer.from("0000000191", "hex")), /broken one/],
  ["a text of 4 GB in a frame of six bytes", (connection) => connection.raw(Buffer.from("0000000691dbffffffff", "hex").subarray(0, 10)), /broken one/],
]) {
  test(`${name}, and the connection's end: the question is not sent again, and the next one is answered`, async () => {
    const asked = [];
    await serve(([id, { query }], connection) => {
      asked.push(query);
      if (query !== "bad") return connection.send([id, found(query)]);
      send(connection, id);
      connection.finish();
    });
    await withClient(async (client) => {
      await client.search("first");
      await assert.rejects(client.search("bad"), (failure) => failure instanceof MemdClientError && error.test(failure.message));
      assert.equal((await client.search("next")).results[0].snippet, "next");
    });
    assert.deepEqual(asked, ["first", "bad", "next"]);
  });
}

test("answers under ids that nobody waits for are ignored, and each question has its own", async () => {
  await serve(([id, { query }], connection) => {
    for (const wrong of [id + 1000, -id, 2 ** 40, "1", null, [id], 0.5]) connection.send([wrong, found("wrong")]);
    connection.send([id, found(query)]);
    connection.send([id, found("twice")]);
  });
  await withClient(async (client) => {
    const answers = await Promise.all(["a", "b", "c"].map((query) => client.search(query)));
    assert.deepEqual(answers.map((answer) => answer.results[0].snippet), ["a", "b", "c"]);
  });
});

test("an answer of another kind is a failure of its question alone", async () => {
  await serve(([id, { query }], connection) => connection.send([id, query === "odd" ? { type: "stopping" } : found(query)]));
  await withClient(async (client) => {
    const odd = assert.rejects(client.search("odd"), (error) => error instanceof RequestFailed && error.code === "protocol");
    assert.equal((await client.search("even")).results[0].snippet, "even");
    await odd;
  });
});

test("an answer that comes byte by byte is read, and the largest one that there may be", async () => {
  const large = "x".repeat((8 << 20) - 200);
  await serve(async ([id, { query }], connection) => {
    if (query === "large") return connection.raw(largeFrame(id, large));
    const bytes = whole(id, query);
    for (let at = 0; at < bytes.length; at += 1) {
      connection.raw(bytes.subarray(at, at + 1));
      await new Promise(setImmediate);
    }
  });
  await withClient(async (client) => {
    assert.equal((await client.search("slow")).results[0].snippet, "slow");
    assert.equal((await client.search("large")).results[0].snippet.length, large.length);
  });
});

/** A reply beyond what `frame` allows for a request. */
function largeFrame(id, text) {
  const payload = encode([id, found(text)], 500);
  return Buffer.concat([header(payload.length), payload]);
}

test("a daemon that stops in the middle of an answer is waited for no longer than the timeout", async () => {
  await serve(([id], connection) => connection.raw(whole(id, "x").subarray(0, 30)));
  await withClient((client) => assert.rejects(client.search("x"), TimedOut), { timeoutMs: 200 });
});

test("a hundred questions that wait when the daemon goes are each sent once more, on one connection", async () => {
  const asked = new Map();
  let isOld = true;
  const server = await serve((request, connection) => {
    const { query } = request[1];
    asked.set(query, (asked.get(query) ?? 0) + 1);
    if (query === "first" || !isOld) return echo(request, connection);
    if (asked.size === 101) {
      isOld = false;
      connection.end();
    }
  });
  await withClient(async (client) => {
    await client.search("first");
    const queries = Array.from({ length: 100 }, (_, n) => `${n}`);
    const answers = await Promise.all(queries.map((query) => client.search(query)));
    assert.deepEqual(answers.map((answer) => answer.results[0].snippet), queries);
  });
  assert.deepEqual(new Set([...asked].map(([query, times]) => (query === "first" ? 2 : times))), new Set([2]));
  assert.equal(server.sockets.length, 2);
});

test("a daemon that goes again at the second try is given up", async () => {
  let asked = 0;
  await serve((request, connection) => {
    asked += 1;
    if (request[1].query === "first") echo(request, connection);
    else connection.end();
  });
  await withClient(async (client) => {
    await client.search("first");
    await assert.rejects(client.search("x"), ConnectionLost);
    assert.equal(asked, 3);
  });
});

for (const [name, greeting] of [
  ["half a greeting", Buffer.from("0000002083", "hex")],
  ["noise", Buffer.from("a".repeat(5000))],
  ["an answer before the greeting", frame([1, found("x")])],
  ["a greeting without a protocol", frame({ type: "hello" })],
]) {
  test(`${name} is an error with a name, in no longer than the timeout`, async () => {
    const server = createServer((socket) => {
      server.sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", () => socket.write(greeting));
    });
    server.sockets = [];
    await new Promise((resolve) => server.listen(path, resolve));
    servers.push(server);
    await withClient((client) => assert.rejects(client.search("x"), MemdClientError), { timeoutMs: 300 });
  });
}

test("a request that is too long, or has an option that does not exist, is not sent", async () => {
  await serve(echo);
  await withClient(async (client) => {
    await assert.rejects(client.search("x".repeat(REQUEST_LIMIT)), (error) => error.code === "too_large");
    await assert.rejects(client.search("x", { maxResults: 3 }), /search has no option maxResults/);
    assert.equal((await client.search("\ud800")).results[0].snippet, "\ufffd");
  });
});

test("nothing at the socket is told with the remedy", async () => {
  await withClient((client) => assert.rejects(client.search("x"), /memd-ctl up/));
});

test("a closed client stays closed, and ends what waits", async () => {
  await serve(() => {});
  const client = new Client({ socket: path });
  const waiting = client.search("x");
  setTimeout(() => client.close(), 50);
  await assert.rejects(waiting, /closed/);
  await assert.rejects(client.search("x"), /closed/);
});

test("a client that is closed while the daemon does not greet waits no longer", async () => {
  await serve(echo, { hello: null });
  const client = new Client({ socket: path, timeoutMs: null });
  const waiting = client.search("x");
  setTimeout(() => client.close(), 50);
  await assert.rejects(waiting, /closed/);
});

test("a timeout must be possible", () => {
  for (const timeoutMs of [0, -1, NaN, Infinity, "soon"]) assert.throws(() => new Client({ timeoutMs }), RangeError);
});
