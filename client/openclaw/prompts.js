// What the model is told: where memory is in the system prompt, and the silent turn before a conversation is compacted.

import { marked } from "memd-client";

const SOFT_THRESHOLD_TOKENS = 4000; // how long before compaction the turn comes
const FORCE_TRANSCRIPT_BYTES = 2 << 20;
const RESERVE_TOKENS = 20_000; // for the answer and for compaction itself
const RESERVE_SHARE = 0.25; // of a small window
const NO_REPLY = "NO_REPLY";

/** The lines of the system prompt about memory. */
export function promptSection({ availableTools, citationsMode }) {
  if (!availableTools.has("memory_search")) return [];
  const lines = [
    "## Memory",
    "Before you answer anything about earlier work, decisions, dates, people, preferences or open tasks, call memory_search.",
  ];
  if (availableTools.has("memory_get")) lines.push("To read on around a hit, call memory_get with its path and startLine.");
  if (availableTools.has("memory_append")) {
    lines.push("When the user asks you to remember something, or a decision will matter later, write it down with memory_append.");
  }
  lines.push(
    "If nothing is found, say that you looked. If a reply says disabled, stale or degraded, tell the user, with the action it names.",
    citationsMode === "off" ? "Do not name files or lines of memory unless the user asks." : "Name the source (path#L1-L9) where it helps the user.",
    "",
  );
  return lines;
}

/** When and how memory is written down before compaction; null: the configuration turns it off. */
export function flushPlan({ cfg, nowMs = Date.now(), contextWindowTokens } = {}) {
  const defaults = cfg?.agents?.defaults;
  const settings = defaults?.compaction?.memoryFlush ?? {};
  if (settings.enabled === false) return null;
  const note = `memory/${localDay(nowMs, defaults?.userTimezone)}.md`;
  const reserve = contextWindowTokens > 0 ? Math.min(RESERVE_TOKENS, Math.floor(contextWindowTokens * RESERVE_SHARE)) : RESERVE_TOKENS;
  const soft = Number.isFinite(settings.softThresholdTokens) ? Math.max(0, settings.softThresholdTokens) : SOFT_THRESHOLD_TOKENS;
  return {
    softThresholdTokens: contextWindowTokens > 0 ? Math.min(soft, Math.floor((contextWindowTokens - reserve) / 2)) : soft,
    forceFlushTranscriptBytes: FORCE_TRANSCRIPT_BYTES,
    reserveTokensFloor: reserve,
    ...(settings.model?.trim() ? { model: settings.model.trim() } : {}),
    prompt: marked(
      [
        "This conversation is about to be compacted: its details will be lost.",
        `Write down now what should outlast it, in ${note} (create memory/ if it is not there).`,
        `- Append to ${note}. Never overwrite it, never repeat what it already says, and use no other file name.`,
        "- Worth keeping: decisions with their reason, facts, preferences, names, open tasks, agreed next steps.",
        "- MEMORY.md, AGENTS.md, SOUL.md and the other workspace files are read-only in this turn.",
        `Then answer with ${NO_REPLY} alone. If nothing is worth keeping, answer ${NO_REPLY} at once.`,
        `Current time: ${new Date(nowMs).toISOString()}`,
      ].join("\n"),
      "flush",
    ),
    systemPrompt:
      "This turn is for saving memory before compaction. The user does not see it. " +
      `Save what should last, then answer with ${NO_REPLY} and nothing else.`,
    relativePath: note,
  };
}

function localDay(nowMs, timeZone) {
  const format = (zone) => new Intl.DateTimeFormat("en-CA", { timeZone: zone, dateStyle: "short" }).format(new Date(nowMs));
  try {
    return format(timeZone);
  } catch {
    return format(undefined); // no zone of that name
  }
}
