// What OpenClaw's own screens and commands ask memory for.

import { MemdClientError } from "memd-client";

import { originsOf } from "./conversation.js";
import { excerptOf, hitOf } from "./tools.js";

const PROBES = ["keyword", "vector", "watcher", "provider_health", "store"];

/** What OpenClaw has recorded of a note that an agent wrote. The module is OpenClaw's own, of 2026.9 and later. */
async function readRecord(note) {
  const { readMemoryArtifactProvenance } = await import("openclaw/plugin-sdk/memory-core-host-runtime-core");
  return readMemoryArtifactProvenance(note);
}

/** The runtime of the memory slot. */
export function createRuntime(memd, conversations) {
  return {
    async getMemorySearchManager({ cfg, agentId }) {
      const asker = (sessionKey) => conversations.asker({ sessionKey, agentId, config: cfg });
      try {
        return { manager: await MemdManager.of(memd, agentId, asker) };
      } catch (error) {
        if (!(error instanceof MemdClientError)) throw error;
        return { manager: null, error: error.message };
      }
    },
    resolveMemoryBackendConfig: () => ({ backend: "builtin" }),
    /** The hits that the conversation may see: memd's scope decides, by the session key. Without one, no transcript is seen. */
    async authorizeSearchHits({ cfg, agentId, requesterSessionKey, sandboxed, hits }) {
      const asks = { sessionKey: requesterSessionKey, agentId, sandboxed, config: cfg };
      const maybe = requesterSessionKey && conversations.seesTranscripts(asks) ? hits : hits.filter((hit) => hit.source === "memory");
      if (!requesterSessionKey) return maybe;
      const { session_key: key } = conversations.asker(asks);
      const paths = [...new Set(maybe.map((hit) => hit.path))];
      const seen = await Promise.all(paths.map((path) => isVisible(memd, path, key)));
      const visible = new Set(paths.filter((_, at) => seen[at]));
      return maybe.filter((hit) => visible.has(hit.path));
    },
    supportsWorkspaceMemoryReadSources: true,
    classifyWorkspaceMemoryPaths: (asked) => originsOf(asked, readRecord),
    async closeAllMemorySearchManagers() {},
  };
}

/** Whether a conversation may read a file. It may not where memd does not answer. */
async function isVisible(memd, path, sessionKey) {
  try {
    return !(await memd.get(path, { lines: 1, session_key: sessionKey })).missing;
  } catch (error) {
    if (!(error instanceof MemdClientError)) throw error;
    return false;
  }
}

/** Searches and reads for one agent. */
class MemdManager {
  #memd;
  #agentId;
  #asker; // of a session key
  #version;
  #status;

  constructor(memd, agentId, asker) {
    this.#memd = memd;
    this.#agentId = agentId;
    this.#asker = asker;
  }

  static async of(memd, agentId, asker) {
    const manager = new MemdManager(memd, agentId, asker);
    await manager.#look();
    return manager;
  }

  async #look() {
    const report = await this.#memd.status({ agent: this.#agentId });
    this.#version = report.version;
    this.#status = report.agents[this.#agentId] ?? Object.values(report.agents)[0];
  }

  async search(query, { maxResults, minScore, sessionKey, sources } = {}) {
    const found = await this.#memd.search(query, {
      ...this.#asker(sessionKey),
      max_results: maxResults === undefined ? undefined : Math.min(50, Math.max(1, maxResults)),
      min_score: minScore === undefined ? undefined : Math.min(1, Math.max(0, minScore)),
      source: sources?.length === 1 ? sources[0] : undefined,
    });
    return found.results.map(hitOf);
  }

  async readFile({ relPath, from, lines }) {
    return excerptOf(await this.#memd.get(relPath, { agent: this.#agentId, start_line: from, lines }));
  }

  /** As it was when the manager was made, or at the last sync. */
  status() {
    const { vector, keyword, vectors, ...now } = this.#status;
    const faults = PROBES.filter((name) => !this.#status[name].ok).map((name) => `${name}: ${this.#status[name].reason}`);
    return {
      backend: "builtin",
      provider: now.provider,
      model: now.model,
      files: now.files,
      chunks: now.chunks,
      dirty: now.dirty > 0,
      workspaceDir: now.workspace,
      extraPaths: now.extra_paths,
      sources: now.sources,
      fts: { enabled: true, available: keyword.ok, ...(keyword.ok ? {} : { error: keyword.reason }) },
      vector: { enabled: vector.enabled, available: vector.available, semanticAvailable: vector.available },
      ...(now.backend_fallback ? { fallback: { from: now.backend_fallback.from, reason: now.backend_fallback.reason } } : {}),
      ...(faults.length ? { lastSyncError: faults.join("; ") } : {}),
      custom: { memd: { version: this.#version, backend: now.backend, waitingChunks: vectors.waiting, etaS: vectors.eta_s } },
    };
  }

  async sync({ force = false } = {}) {
    await this.#memd.sync({ agent: this.#agentId, force });
    await this.#look();
  }

  async probeEmbeddingAvailability() {
    await this.#look();
    const { ok, reason } = this.#status.provider_health;
    return ok ? { ok } : { ok, error: reason };
  }

  async probeVectorAvailability() {
    await this.#look();
    return this.#status.vector.available;
  }
}
