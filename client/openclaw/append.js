// memory_append: writes to today's note, by the program memd-mcp, where the person who owns the memory has turned it on.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { markedReply } from "memd-client";

import { configOf } from "./conversation.js";

const NAME = "memory_append";
const MAX_CHARS = 2000;
const PATIENCE_MS = 30_000; // another writer may hold the note for ten seconds

const APPEND = {
  name: NAME,
  label: "Memory Append",
  description:
    "Write something down that should outlast this conversation: a decision with its reason, a fact, a preference, a promise, an open task. It is " +
    "appended to today's note, with your name and the time; nothing is ever changed or deleted. For when the user says \"remember this\", or a thing " +
    "will clearly matter later. Say what it is in a sentence or two that make sense alone, with names and dates. Never write down passwords, keys " +
    "or tokens. The reply says where it stands.",
  parameters: {
    type: "object",
    properties: { text: { type: "string", minLength: 1, maxLength: MAX_CHARS, description: "What to write down, as Markdown without headings." } },
    required: ["text"],
    additionalProperties: false,
  },
};

/** The tool of one conversation; null: OpenClaw does not say which conversation it is. */
export function appendTool(command, conversations, context) {
  if (!context.sessionKey) return null;
  return {
    ...APPEND,
    async execute(_id, { text }, signal) {
      signal?.throwIfAborted();
      const { session_key: key } = conversations.asker({ ...context, config: configOf(context) });
      const reply = await written([...command, "--write", "OpenClaw", "--session-key", key], text, signal);
      return { content: [{ type: "text", text: JSON.stringify(reply, null, 2) }], details: reply };
    },
  };
}

/** What memd-mcp replies; it checks who asks, takes secrets out, locks the note and appends. */
async function written([program, ...words], text, signal) {
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: NAME, arguments: { text } } };
  const stop = AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(signal ? [signal] : [])]);
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], signal: stop });
  try {
    const [line] = await Promise.race([firstLine(child), failure(child)]);
    const { result } = JSON.parse(line);
    const reply = JSON.parse(result.content[0].text);
    const isMissing = reply.error?.startsWith("There is no tool");
    return isMissing ? refused("This conversation may not write to memory: others read along.") : reply;
  } catch (error) {
    signal?.throwIfAborted();
    return refused(`memd-mcp did not answer: ${error.message}`);
  } finally {
    child.kill();
  }

  function firstLine({ stdin, stdout }) {
    stdin.on("error", () => {}); // it has ended, which the other promise tells
    stdin.write(`${JSON.stringify(call)}\n`);
    return new Promise((resolve) => createInterface(stdout).once("line", (...lines) => resolve(lines)));
  }

  function failure(process) {
    return new Promise((_, reject) => {
      process.once("error", reject);
      process.once("exit", (status) => reject(new Error(`it ended with status ${status}`)));
    });
  }
}

function refused(error) {
  return markedReply({ written: false, error, action: "Tell the user that it was not written down, and why." });
}
