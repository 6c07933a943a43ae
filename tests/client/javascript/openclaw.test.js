import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { DaemonNotRunning, RequestFailed } from "../../../client/javascript/index.js";

import plugin from "../../../client/openclaw/index.js";
import { flushPlan, promptSection } from "../../../client/openclaw/prompts.js";
import { createRuntime } from "../../../client/openclaw/runtime.js";
import { appendTool } from "../../../client/openclaw/append.js";
import { Conversations, originsOf } from "../../../client/openclaw/conversation.js";
import { getTool, searchTool } from "../../../client/openclaw/tools.js";

const manifest = JSON.parse(readFileSync(new URL("../../../client/openclaw/openclaw.plugin.json", import.meta.url), "utf8"));

const HIT = { path: "MEMORY.md", start_line: 3, end_line: 4, score: 0.9, snippet: "We chose PostgreSQL.\n", source: "memory", citation: null };
const FOUND = {
  results: [HIT], provider: "local", model: "e5", mode: "hybrid", citations: false, fallback: false, stale: false, omitted: 0,
  degraded: [], scope_denied: false,
};

/** A client that answers from a table, and keeps what it was asked. */
function fake(answers) {
  const asked = [];
  const method = (name) => async (...given) => {
    asked.push([name, ...given]);
    const answer = typeof answers[name] === "function" ? answers[name](...given) : answers[name];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { asked, search: method("search"), get: method("get"), status: method("status"), sync: method("sync") };
}

const CONVERSATIONS = new Conversations({});

const call = async (tool, parameters) => (await tool.execute("1", parameters)).details;

test("all that is registered is in the manifest", () => {
  const registered = { tools: [], commands: [] };
  const api = {
    pluginConfig: { socket: "/tmp/s", appendCommand: ["memd-mcp"] },
    registerMemoryCapability: (capability) => (registered.capability = capability),
    registerTool: (_factory, { names }) => registered.tools.push(...names),
    registerCli: (_register, { descriptors }) => registered.commands.push(...descriptors),
  };
  plugin.register(api);
  assert.equal(plugin.id, manifest.id);
  assert.deepEqual(registered.tools.sort(), manifest.contracts.tools);
  assert.deepEqual(registered.commands, manifest.cliCommands);
  assert.equal(typeof registered.capability.runtime.authorizeSearchHits, "function");
  registered.tools = [];
  plugin.register({ ...api, pluginConfig: {} });
  assert.deepEqual(registered.tools.sort(), ["memory_get", "memory_search"]); // nobody has turned writing on
});

/** A program in the place of memd-mcp: answers the call by a body, which has `call` and the words of its command line. */
const program = (body) => [
  process.execPath,
  "-e",
  `require("node:readline").createInterface(process.stdin).once("line", (line) => {
    const call = JSON.parse(line), words = process.argv.slice(1);
    ${body}
  })`,
  "--",
];
const answer = (reply) => `console.log(JSON.stringify({ id: call.id, result: { content: [{ text: JSON.stringify(${reply}) }] } }));`;
const KEY = { sessionKey: "agent:main:main" };

test("what is to be remembered goes to memd-mcp, in the name of its conversation", async () => {
  const reply = await call(appendTool(program(answer("{ written: true, words, ...call.params }")), CONVERSATIONS, KEY), { text: "We chose heron." });
  assert.deepEqual(reply, {
    written: true, words: ["--write", "OpenClaw", "--session-key", "agent:main:main"], name: "memory_append", arguments: { text: "We chose heron." },
  });
});

test("without a conversation there is no such tool", () => assert.equal(appendTool(["x"], CONVERSATIONS, {}), null));

test("whatever keeps it from being written is said", async () => {
  for (const [command, why] of [
    [["/nowhere/memd-mcp"], /ENOENT/],
    [program("process.exit(3)"), /status 3/],
    [program('console.log("no JSON")'), /did not answer/],
    [program(answer('{ error: "There is no tool \\"memory_append\\"." }')), /others read along/],
  ]) {
    const reply = await call(appendTool(command, CONVERSATIONS, KEY), { text: "x" });
    assert.deepEqual([reply.written, why.test(reply.error)], [false, true], reply.error);
    assert.match(reply._memd, /^[0-9a-f]{16}$/);
  }
});

test("a call that is given up ends the program", async () => {
  const giveUp = new AbortController();
  const running = appendTool(program("setInterval(() => {}, 1000)"), CONVERSATIONS, KEY).execute("1", { text: "x" }, giveUp.signal);
  giveUp.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
});

test("a search is asked in the name of its conversation, and answered in OpenClaw's words", async () => {
  const memd = fake({ search: FOUND });
  const tool = searchTool(memd, CONVERSATIONS, { sessionKey: "agent:main:telegram:group:1", agentId: "main" });
  const reply = await call(tool, { query: "which database?", maxResults: 99, corpus: "memory" });
  assert.deepEqual(reply.results, [{ path: "MEMORY.md", startLine: 3, endLine: 4, score: 0.9, snippet: HIT.snippet, source: "memory" }]);
  const [[, query, options]] = memd.asked;
  assert.equal(query, "which database?");
  assert.deepEqual(
    { session_key: options.session_key, agent: options.agent, max_results: options.max_results, source: options.source },
    { session_key: "agent:main:telegram:group:1", agent: undefined, max_results: 50, source: "memory" },
  );
  assert.match(reply._memd, /^[0-9a-f]{16}$/);
});

test("a citation stands in the snippet", async () => {
  const memd = fake({ search: { ...FOUND, results: [{ ...HIT, citation: "MEMORY.md#L3-L4" }] } });
  const [hit] = (await call(searchTool(memd, CONVERSATIONS, {}), { query: "x" })).results;
  assert.equal(hit.snippet, "We chose PostgreSQL.\n\nSource: MEMORY.md#L3-L4");
  assert.equal(hit.citation, "MEMORY.md#L3-L4");
});

test("what is stale or missing is said", async () => {
  const memd = fake({ search: { ...FOUND, stale: true, degraded: [{ part: "vector", reason: "no model" }] } });
  const reply = await call(searchTool(memd, CONVERSATIONS, {}), { query: "x" });
  assert.equal(reply.stale, true);
  assert.match(reply.warning, /vector: no model.*not be found yet/);
});

test("a conversation that may not search is told so, and goes on", async () => {
  const reply = await call(searchTool(fake({ search: { ...FOUND, results: [], scope_denied: true } }), CONVERSATIONS, {}), { query: "x" });
  assert.deepEqual([reply.results, reply.scopeDenied, reply.disabled], [[], true, undefined]);
});

test("without a daemon the reply says that memory is disabled, and how to start it", async () => {
  const reply = await call(searchTool(fake({ search: new DaemonNotRunning("/tmp/s") }), CONVERSATIONS, {}), { query: "x" });
  assert.deepEqual([reply.disabled, reply.unavailable, reply.results], [true, true, []]);
  assert.match(reply.action, /memd-ctl up/);
});

test("a call that makes no sense does not disable memory", async () => {
  const reply = await call(searchTool(fake({ search: new RequestFailed("bad_request", "No.") }), CONVERSATIONS, {}), { query: "x" });
  assert.equal(reply.disabled, undefined);
  assert.equal(reply.error, "No.");
});

test("the wiki is not searched, and the reply says it", async () => {
  const memd = fake({});
  assert.match((await call(searchTool(memd, CONVERSATIONS, {}), { query: "x", corpus: "wiki" })).warning, /wiki/);
  assert.deepEqual(memd.asked, []);
});

test("an excerpt says where to read on", async () => {
  const memd = fake({ get: { path: "MEMORY.md", text: "a\nb", missing: false, start_line: 2, end_line: 3, next_line: 4 } });
  const reply = await call(getTool(memd, CONVERSATIONS, { agentId: "main" }), { path: "MEMORY.md", from: 2, lines: 2 });
  assert.deepEqual([reply.status, reply.from, reply.lines, reply.nextFrom, reply.truncated], ["ok", 2, 2, 4, true]);
  assert.equal(memd.asked[0][2].agent, "main");
});

test("an excerpt is as long as OpenClaw's settings have it", async () => {
  const limits = (chars) => ({ contextLimits: { memoryGetMaxChars: chars } });
  const both = { agents: { defaults: limits(9000), entries: { main: limits(5000), tiny: limits(5) } } };
  for (const [config, agentId, lines, expected] of [
    [undefined, "main", undefined, [120, 12000]],
    [{ agents: { defaults: limits(9000) } }, "main", 7, [7, 9000]],
    [both, "main", undefined, [120, 5000]],
    [both, "tiny", undefined, [120, 100]],
  ]) {
    const memd = fake({ get: { path: "x", missing: true } });
    await call(getTool(memd, CONVERSATIONS, { agentId, config }), { path: "x", lines });
    assert.deepEqual([memd.asked[0][2].lines, memd.asked[0][2].max_chars], expected);
  }
});

test("a note that is not there is not found, and a failure is an error", async () => {
  assert.equal((await call(getTool(fake({ get: { path: "x", missing: true } }), CONVERSATIONS, {}), { path: "x" })).status, "not_found");
  assert.equal((await call(getTool(fake({ get: new RequestFailed("unavailable", "No.") }), CONVERSATIONS, {}), { path: "x" })).status, "error");
});

test("a bug of the plugin is not hidden", async () => {
  await assert.rejects(call(searchTool(fake({ search: new TypeError("bug") }), CONVERSATIONS, {}), { query: "x" }), TypeError);
});

test("hits that a conversation may not see are taken out", async () => {
  const memd = fake({ get: (path) => ({ missing: path.startsWith("sessions/") }) });
  const hits = [HIT, { ...HIT, path: "sessions/a.jsonl", source: "sessions" }, { ...HIT, start_line: 9 }];
  const { authorizeSearchHits } = createRuntime(memd, CONVERSATIONS);
  assert.deepEqual(await authorizeSearchHits({ requesterSessionKey: "agent:main:x:group:1", hits }), [hits[0], hits[2]]);
  assert.equal(memd.asked.length, 2);
  assert.deepEqual(await authorizeSearchHits({ requesterSessionKey: undefined, hits }), [hits[0], hits[2]]);
  const down = createRuntime(fake({ get: new DaemonNotRunning("/tmp/s") }), CONVERSATIONS);
  assert.deepEqual(await down.authorizeSearchHits({ requesterSessionKey: "agent:main:main", hits }), []);
});

const OK = { ok: true, reason: null };
const STATUS = {
  version: "0.1.0",
  agents: {
    main: {
      workspace: "/w", backend: "builtin", provider: "local", model: "e5", files: 3, chunks: 9, dirty: 1, extra_paths: [], sources: ["memory"],
      keyword: OK, vector: { ...OK, ok: false, reason: "no model", enabled: true, available: false }, watcher: OK, provider_health: OK, store: OK,
      vectors: { waiting: 2, eta_s: 4 }, backend_fallback: null,
    },
  },
};

test("the status is memd's own", async () => {
  const { manager } = await createRuntime(fake({ status: STATUS }), CONVERSATIONS).getMemorySearchManager({ agentId: "main" });
  const status = manager.status();
  assert.deepEqual([status.files, status.chunks, status.dirty, status.workspaceDir], [3, 9, true, "/w"]);
  assert.equal(status.vector.available, false);
  assert.match(status.lastSyncError, /vector: no model/);
  assert.equal(status.custom.memd.waitingChunks, 2);
  assert.equal(await manager.probeVectorAvailability(), false);
});

test("without a daemon there is no manager, and a reason", async () => {
  const { manager, error } = await createRuntime(fake({ status: new DaemonNotRunning("/tmp/s") }), CONVERSATIONS).getMemorySearchManager({ agentId: "main" });
  assert.equal(manager, null);
  assert.match(error, /memd-ctl up/);
});

test("the prompt names only tools that there are", () => {
  assert.deepEqual(promptSection({ availableTools: new Set(["memory_get"]) }), []);
  assert.doesNotMatch(promptSection({ availableTools: new Set(["memory_search"]) }).join("\n"), /memory_get/);
  assert.match(promptSection({ availableTools: new Set(["memory_search", "memory_get"]) }).join("\n"), /memory_get/);
  assert.match(promptSection({ availableTools: new Set(["memory_search", "memory_append"]) }).join("\n"), /memory_append/);
});

test("the silent turn writes to the note of the user's day, and is marked", () => {
  const nowMs = Date.UTC(2026, 1, 8, 16, 30); // half past midnight of the 9th in Shanghai
  const plan = flushPlan({ nowMs, cfg: { agents: { defaults: { userTimezone: "Asia/Shanghai" } } }, contextWindowTokens: 32_768 });
  assert.equal(plan.relativePath, "memory/2026-02-09.md");
  assert.equal(plan.reserveTokensFloor, 8192);
  assert.match(plan.prompt, /^<memd-flush [0-9a-f]{16}>\n[^]*memory\/2026-02-09.md[^]*<\/memd-flush/);
  assert.equal(flushPlan({ cfg: { agents: { defaults: { compaction: { memoryFlush: { enabled: false } } } } } }), null);
  assert.match(flushPlan({ nowMs, cfg: { agents: { defaults: { userTimezone: "Mars/Base" } } } }).relativePath, /^memory\/2026-02-0[89].md$/);
});

const chatsOf = (chatType) => new Conversations({ runtime: { agent: { session: { getSessionEntry: () => ({ chatType }) } } } });
const SHARED = { session: { groupScope: "main" } };
const NAMED = { bindings: [{ agentId: "main", match: { channel: "slack" } }, { agentId: "main", session: { groupScope: "main" } }] };

for (const [name, conversations, config, sessionKey, expected] of [
  ["the main session is private", CONVERSATIONS, {}, "agent:main:main", "agent:main:main"],
  ["groups that talk in the main session make it theirs", CONVERSATIONS, SHARED, "agent:main:main", "agent:main:main:group:shared"],
  ["so does one group that is named", CONVERSATIONS, NAMED, "agent:main:main", "agent:main:main:group:shared"],
  ["and its threads and helpers", CONVERSATIONS, SHARED, "agent:main:main:thread:7", "agent:main:main:thread:7:group:shared"],
  ["a direct message stays private beside them", CONVERSATIONS, SHARED, "agent:main:telegram:direct:4", "agent:main:telegram:direct:4"],
  ["what OpenClaw keeps as a group is one, whatever its key", chatsOf("group"), {}, "agent:main:telegram:direct:4", "agent:main:telegram:direct:4:group:shared"],
  ["so is a channel", chatsOf("channel"), {}, "agent:main:explicit:x", "agent:main:explicit:x:group:shared"],
  ["what OpenClaw keeps as direct has its key", chatsOf("direct"), {}, "agent:main:main", "agent:main:main"],
]) {
  test(name, async () => {
    const memd = fake({ search: FOUND, get: { path: "x", missing: true } });
    const context = { sessionKey, agentId: "main", getRuntimeConfig: () => config };
    await call(searchTool(memd, conversations, context), { query: "x" });
    await call(getTool(memd, conversations, context), { path: "MEMORY.md" });
    await createRuntime(memd, conversations).authorizeSearchHits({ cfg: config, agentId: "main", requesterSessionKey: sessionKey, hits: [HIT] });
    assert.deepEqual(memd.asked.map(([, , options]) => options.session_key), [expected, expected, expected]);
    const written = await call(appendTool(program(answer("{ words }")), conversations, context), { text: "x" });
    assert.equal(written.words.at(-1), expected);
  });
}

test("a session that OpenClaw cannot look up is judged by its key", () => {
  const broken = new Conversations({ runtime: { agent: { session: { getSessionEntry: () => { throw new Error("locked"); } } } } });
  assert.deepEqual(broken.asker({ sessionKey: "agent:main:main", agentId: "main" }), { session_key: "agent:main:main" });
});

const visibility = (value) => ({ tools: { sessions: { visibility: value } } });
for (const [sessionKey, sandboxed, config, sees] of [
  ["agent:main:main", false, {}, true],
  ["agent:main:main", false, visibility("agent"), true],
  ["agent:main:main", false, visibility("tree"), true],
  ["agent:main:telegram:direct:4", false, visibility("tree"), false],
  ["agent:main:main", false, visibility("self"), false],
  ["agent:main:main", true, {}, false],
  ["agent:main:main", true, { agents: { defaults: { sandbox: { sessionToolsVisibility: "all" } } } }, true],
]) {
  test(`earlier conversations, ${JSON.stringify([sessionKey, sandboxed, config])}: ${sees ? "seen" : "not seen"}`, async () => {
    const memd = fake({ search: FOUND, get: { path: "x", missing: true } });
    const context = { sessionKey, agentId: "main", sandboxed, config };
    const search = searchTool(memd, CONVERSATIONS, context);
    await call(search, { query: "x" });
    assert.equal(memd.asked[0][2].source, sees ? undefined : "memory");
    assert.equal((await call(search, { query: "x", corpus: "sessions" })).scopeDenied, sees ? undefined : true);
    memd.asked.length = 0;
    await call(getTool(memd, CONVERSATIONS, context), { path: "./sessions/a.jsonl" });
    assert.equal(memd.asked.length, sees ? 1 : 0);
    const hits = [HIT, { ...HIT, path: "sessions/a.jsonl", source: "sessions" }];
    const there = createRuntime(fake({ get: { missing: false } }), CONVERSATIONS);
    const allowed = await there.authorizeSearchHits({ cfg: config, agentId: "main", requesterSessionKey: sessionKey, sandboxed, hits });
    assert.deepEqual(allowed, sees ? hits : [HIT]);
  });
}

test("notes go into the prompt as OpenClaw's own memory has it: those of the workspace, unless untrusted was written", async () => {
  const workspaceDir = mkdtempSync(join(tmpdir(), "memd-"));
  try {
    mkdirSync(join(workspaceDir, "memory", "dreaming"), { recursive: true });
    mkdirSync(join(workspaceDir, "users", "ada"), { recursive: true });
    const origins = {
      "MEMORY.md": "agent", "USER.md": "untrusted", "DREAMS.md": "system", "AGENTS.md": "untrusted", "memory/2026-02-09.md": "agent",
      "memory/dreaming/a.md": "system", "memory/a.txt": "untrusted", "users/ada/USER.md": "agent", "gone.md": "untrusted", "../MEMORY.md": "untrusted",
    };
    for (const path of Object.keys(origins)) if (!/gone|\.\./.test(path)) writeFileSync(join(workspaceDir, path), "x");
    symlinkSync("/etc/hostname", join(workspaceDir, "memory", "link.md"));
    const record = async ({ relativePath }) => (relativePath === "USER.md" ? { originClass: "untrusted" } : undefined);
    const relativePaths = [...Object.keys(origins), "memory/link.md"];
    const found = await originsOf({ workspaceDir, relativePaths }, record);
    assert.deepEqual(Object.fromEntries(found.map((one) => [one.relativePath, one.originClass])), { ...origins, "memory/link.md": "untrusted" });
    const unknown = await originsOf({ workspaceDir, relativePaths: ["MEMORY.md"] }, () => Promise.reject(new Error("no such module")));
    assert.equal(unknown[0].originClass, "untrusted");
  } finally {
    rmSync(workspaceDir, { recursive: true });
  }
});

test("of a workspace that is elsewhere the paths count that OpenClaw has looked up", async () => {
  const canonical = { "MEMORY.md": "MEMORY.md", "USER.md": undefined, "memory/a.md": "../a.md", "memory/b.md": "/etc/b.md" };
  const readSources = Object.entries(canonical).map(([relativePath, canonicalRelativePath]) => ({ relativePath, canonicalRelativePath }));
  const found = await originsOf({ workspaceDir: "/nowhere", relativePaths: Object.keys(canonical), readSources }, async () => undefined);
  assert.deepEqual(found.map((one) => one.originClass), ["agent", "untrusted", "untrusted", "untrusted"]);
});
