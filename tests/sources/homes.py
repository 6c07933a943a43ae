"""Homes of the four agents as they leave them, empty files in place of transcripts."""

from pathlib import Path

UUIDS = tuple(f"019dec85-7a1c-7d2e-9f00-{number:012x}" for number in range(9))
ROLLOUT = f"rollout-2026-03-02T01-02-03-{UUIDS[5]}"
ARCHIVED = f"rollout-2026-01-02T01-02-03-{UUIDS[6]}"
CHAT = "session-2026-08-21T10-00-a1b2c3d4"

FILES = (
    # OpenClaw
    f".openclaw/agents/main/sessions/{UUIDS[0]}.jsonl",
    f".openclaw/agents/main/sessions/{UUIDS[0]}.jsonl.lock",
    f".openclaw/agents/main/sessions/{UUIDS[0]}.trajectory.jsonl",
    f".openclaw/agents/main/sessions/{UUIDS[0]}-topic-7.jsonl",
    f".openclaw/agents/main/sessions/{UUIDS[1]}.jsonl.reset.2026-03-02T01-02-03.000Z",
    f".openclaw/agents/main/sessions/{UUIDS[2]}.jsonl.deleted.2026-03-02T01-02-03.000Z",
    f".openclaw/agents/main/sessions/cold/{UUIDS[3]}.jsonl.zst",
    ".openclaw/agents/main/sessions/sessions.json",
    ".openclaw/agents/main/agent/auth-profiles.json",
    ".openclaw/agents/work/sessions/daily.jsonl",
    ".openclaw/workspace/MEMORY.md",
    ".openclaw/workspace/AGENTS.md",
    ".openclaw/workspace/memory/2026-03-02.md",
    ".openclaw/workspace-work/memory/2026-03-03.md",
    ".openclaw-team/agents/main/sessions/team.jsonl",
    ".clawdbot/agents/main/sessions/old.jsonl",
    f".pi/agent/sessions/--home-li-app--/2026-03-02T01-02-03_{UUIDS[8]}.jsonl",
    # Claude Code
    f".claude/projects/-home-li-app/{UUIDS[4]}.jsonl",
    f".claude/projects/-home-li-app/{UUIDS[4]}/subagents/agent-a1.jsonl",
    f".claude/projects/-home-li-app/{UUIDS[4]}/subagents/journal.jsonl",
    f".claude/projects/-home-li-app/{UUIDS[4]}/tool-results/x.txt",
    ".claude/projects/-home-li-app/memory/MEMORY.md",
    ".claude/projects/-home-li-app/memory/topics/db.md",
    ".claude/projects/-home-li-app/notes.md",
    ".claude/CLAUDE.md",
    ".claude/history.jsonl",
    # Codex
    f".codex/sessions/2026/03/02/{ROLLOUT}.jsonl",
    f".codex/archived_sessions/{ARCHIVED}.jsonl.zst",
    ".codex/memories/MEMORY.md",
    ".codex/memories/raw_memories.md",
    ".codex/memories/rollout_summaries/a.md",
    ".codex/memories/.git/description.md",
    ".codex/AGENTS.md",
    ".codex/history.jsonl",
    # Gemini CLI
    f".gemini/tmp/9f86d081/chats/{CHAT}.jsonl",
    f".gemini/tmp/9f86d081/chats/{CHAT}.jsonl.tmp-4711",
    f".gemini/tmp/9f86d081/chats/{UUIDS[7]}/b2.jsonl",
    ".gemini/tmp/9f86d081/logs.json",
    ".gemini/tmp/9f86d081/memory/plan.md",
    ".gemini/tmp/9f86d081/memory/skills/x.md",
    ".gemini/GEMINI.md",
)

SESSIONS = (
    f"sessions/claude-code/{UUIDS[4]}.jsonl",
    f"sessions/codex/{ARCHIVED}.jsonl",
    f"sessions/codex/{ROLLOUT}.jsonl",
    f"sessions/gemini/{CHAT}.jsonl",
    f"sessions/openclaw/{UUIDS[0]}-topic-7.jsonl",
    f"sessions/openclaw/{UUIDS[0]}.jsonl",
    f"sessions/openclaw/{UUIDS[1]}.jsonl",
    f"sessions/openclaw/{UUIDS[3]}.jsonl",
    f"sessions/openclaw/2026-03-02T01-02-03_{UUIDS[8]}.jsonl",
    "sessions/openclaw/old.jsonl",
    "sessions/openclaw/team.jsonl",
    "sessions/openclaw/work/daily.jsonl",
)
"""The names in the index of all transcripts of the presets, without those of subagents."""

NOTES = (
    ".claude/projects/-home-li-app/memory/MEMORY.md",
    ".claude/projects/-home-li-app/memory/topics/db.md",
    ".codex/memories/MEMORY.md",
    ".codex/memories/rollout_summaries/a.md",
    ".gemini/GEMINI.md",
    ".gemini/tmp/9f86d081/memory/plan.md",
    ".openclaw/workspace-work/memory/2026-03-03.md",
    ".openclaw/workspace/MEMORY.md",
    ".openclaw/workspace/memory/2026-03-02.md",
)
"""The notes of the memory presets."""


def write_homes(home: Path) -> None:
    """Lay all of that out in a home directory."""
    for name in FILES:
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
