// Which conversation asks, and what of memory OpenClaw lets it have: the host knows more than a session key says.

import { realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";

const OTHERS_READ = new Set(["group", "channel"]);
const NARROW = new Set(["self", "tree"]); // of tools.sessions.visibility: not all conversations of the agent

/** What OpenClaw knows of its conversations. */
export class Conversations {
  #api;

  constructor(api) {
    this.#api = api;
  }

  /** Who asks, as memd is asked. Without a session key it is the owner, in the host's own name. */
  asker({ sessionKey, agentId, config }) {
    if (!sessionKey) return { agent: agentId };
    return { session_key: this.#isShared(sessionKey, agentId, config) ? `${sessionKey}:group:shared` : sessionKey };
  }

  /** Whether a conversation may have what was said in others. */
  seesTranscripts({ sessionKey, agentId, sandboxed, config }) {
    const visibility = config?.tools?.sessions?.visibility;
    if (sandboxed && config?.agents?.defaults?.sandbox?.sessionToolsVisibility !== "all") return false;
    return !NARROW.has(visibility) || (visibility === "tree" && sessionKey === `agent:${agentId}:main`);
  }

  /** Whether others read along although the key looks private. */
  #isShared(sessionKey, agentId, config) {
    if (/^agent:[^:]+:main(:|$)/.test(sessionKey) && leadsGroupsToMain(config)) return true;
    try {
      return OTHERS_READ.has(this.#api?.runtime?.agent?.session?.getSessionEntry?.({ agentId, sessionKey })?.chatType);
    } catch {
      return false; // the key decides alone, as where OpenClaw keeps no entry
    }
  }
}

/** Whether groups talk in the main session: of all, or of one that is named. */
function leadsGroupsToMain(config) {
  const bindings = Array.isArray(config?.bindings) ? config.bindings : [];
  return [config, ...bindings].some((one) => one?.session?.groupScope === "main");
}

/** The configuration that holds now, of a tool's context. */
export function configOf({ getRuntimeConfig, runtimeConfig, config }) {
  return getRuntimeConfig?.() ?? runtimeConfig ?? config;
}

/**
 * Where notes of the workspace come from, for OpenClaw, which puts MEMORY.md and USER.md into the prompt only where it is told "agent".
 *
 * OpenClaw records what its agents wrote after they had read something untrusted; `readRecord` looks that up. Where it cannot be looked up
 * nothing is trusted.
 */
export function originsOf({ workspaceDir, relativePaths, readSources }, readRecord) {
  return Promise.all(
    relativePaths.map(async (relativePath) => {
      const path =
        readSources === undefined
          ? await pathBelow(workspaceDir, relativePath)
          : readSources.find((source) => source.relativePath === relativePath)?.canonicalRelativePath;
      return { relativePath, originClass: await originOf(workspaceDir, path, readRecord) };
    }),
  );
}

async function originOf(workspaceDir, path, readRecord) {
  if (!path || path.includes("\\") || isAbsolute(path)) return "untrusted";
  const [first, second, ...more] = path.split("/");
  if ([first, second, ...more].includes("..")) return "untrusted";
  const isRoot = second === undefined;
  if ((isRoot && first.toLowerCase() === "dreams.md") || (first === "memory" && ["dreaming", ".dreams"].includes(second))) return "system";
  const isNote =
    (isRoot && ["MEMORY.md", "memory.md", "USER.md"].includes(first)) ||
    (first === "memory" && !isRoot && path.endsWith(".md")) ||
    (first === "users" && more.length === 1 && more[0] === "USER.md");
  if (!isNote) return "untrusted";
  try {
    return (await readRecord({ workspaceDir, relativePath: path }))?.originClass ?? "agent";
  } catch {
    return "untrusted";
  }
}

/** Where a note really is, below the workspace; null for one that is elsewhere, or not there. */
async function pathBelow(workspaceDir, relativePath) {
  try {
    const [workspace, file] = await Promise.all([realpath(workspaceDir), realpath(resolve(workspaceDir, relativePath))]);
    const path = relative(workspace, file).split(sep).join("/");
    return path === ".." || path.startsWith("../") ? null : path;
  } catch {
    return null;
  }
}
