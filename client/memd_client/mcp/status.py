"""What memory_status answers: how memory is, in few words. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from memd_client import tool_replies
from memd_client.messages import AgentStatus, Health, StatusReport

STATUS = "memory_status"
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "properties": {}, "additionalProperties": False}
)
_REASON_CHARS = 250


def status_reply(report: StatusReport, max_chars: int) -> dict[str, Any]:
    """The state of each agent, and what is wrong; agents that have no room are left out.

    Args:
        report: The daemon's.
        max_chars: The most characters of the encoded reply.
    """
    reply: dict[str, Any] = {"running": True, "version": report.version, "agents": {}}
    if report.config_error is not None:
        reply["configError"] = report.config_error[:_REASON_CHARS]
    if not report.cache.ok:
        reply["cacheTrouble"] = (report.cache.reason or "it does not work")[:_REASON_CHARS]
    for count, (name, agent) in enumerate(report.agents.items()):
        more = {**reply, "agents": {**reply["agents"], name: _agent(agent)}}
        if len(tool_replies.encoded({**more, "omitted": len(report.agents)})) > max_chars:
            return {**reply, "omitted": len(report.agents) - count}
        reply = more
    return reply


def _agent(agent: AgentStatus) -> dict[str, Any]:
    told: dict[str, Any] = {"provider": agent.provider, "model": agent.model}
    if agent.workspace:  # else the conversation is told no numbers, and to a model a zero would be one
        told = {
            "workspace": agent.workspace,
            **told,
            "files": agent.files,
            "chunks": agent.chunks,
            "vectors": {"done": agent.vectors.done, "waiting": agent.vectors.waiting},
            "pendingChanges": agent.dirty,
        }
    parts = {
        "keyword": agent.keyword,
        "vector": agent.vector,
        "watcher": agent.watcher,
        "provider": agent.provider_health,
        "store": agent.store,
    }
    trouble = {name: _reason(part) for name, part in parts.items() if not part.ok}
    if agent.rebuild is not None:
        told["rebuild"] = agent.rebuild[:_REASON_CHARS]
    return {**told, "trouble": trouble} if trouble else told


def _reason(part: Health) -> str:
    return (part.reason or "it does not work")[:_REASON_CHARS]
