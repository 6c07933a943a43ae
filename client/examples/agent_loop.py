"""An agent with a long-term memory, in one loop: tools, workspace files, pruning, and a flush before compaction.

    memd-ctl up ~/agent && python agent_loop.py ~/agent "Which database did we pick?"

The model is scripted, so that this runs without a network: put your provider's streaming call in place of `stream`.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memd_client import MemdClientError
from memd_client.context.anthropic import conversation, rebuilt
from memd_client.context.daily_note import append_daily_note
from memd_client.context.flush import flush_prompt, flush_system_prompt, should_flush
from memd_client.context.no_reply import NoReplyFilter
from memd_client.context.pruning import Record, prune
from memd_client.context.session_kind import session_kind
from memd_client.context.workspace import bootstrap_workspace
from memd_client.tools import Tools, anthropic_tools, memory_section

Message = dict[str, Any]

_ids = itertools.count(1)  # of calls

SESSION_KEY = "agent:main:main"  # decides what may be seen; the model cannot change it
WINDOW_TOKENS = int(os.environ.get("WINDOW_TOKENS", "200000"))
ZONE = ZoneInfo(os.environ.get("USER_ZONE", "UTC"))  # whose day decides on the daily note
NOTE: Message = {
    "name": "daily_note",
    "description": "Append Markdown to today's memory note.",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class Agent:
    """One conversation. Keep `messages`, `record`, `compactions` and `flushed_at` with it."""

    def __init__(self, workspace: str) -> None:
        kind = session_kind(SESSION_KEY)
        files = bootstrap_workspace(workspace, kind, datetime.now(UTC), ZONE)
        self.workspace = workspace
        self.system = f"{memory_section(private=kind in {'main', 'direct'})}\n{files.text}"
        self.memory = Tools(session_key=SESSION_KEY)
        self.messages: list[Message] = []
        self.record = Record()
        self.compactions, self.flushed_at = 0, -1

    def ask(self, text: str) -> None:
        """Answer the user; if the window is nearly full, let the model write memory first."""
        said = [message.text for message in conversation(self.messages)]
        decision = should_flush(
            window_tokens=WINDOW_TOKENS,
            used_tokens=None,  # or what your provider counted, and as unreported what was said since
            unreported=[self.system, *said, text],
            compactions=self.compactions,
            flushed_at=self.flushed_at,
            is_writable=os.access(self.workspace, os.W_OK),
        )
        if said and decision.due:  # on a copy: that turn is no part of the conversation
            self.turn(flush_prompt(datetime.now(UTC), ZONE), [*self.messages], flush_system_prompt())
            self.flushed_at = self.compactions
        # Compact self.messages here when it is time, and count it in self.compactions.
        self.turn(text, self.messages)

    def turn(self, text: str, messages: list[Message], instructions: str = "") -> None:
        """Call the model until it calls no more tools, and print its text unless that is NO_REPLY."""
        messages.append({"role": "user", "content": text})
        calls: list[Message] = [{}]
        while calls:
            pruned = prune(
                conversation(messages), window_tokens=WINDOW_TOKENS, record=self.record, now_s=time.time()
            )
            self.record = pruned.record
            answer, no_reply = [], NoReplyFilter()
            sent = rebuilt(messages, pruned.messages)
            for block in stream(self.system + instructions, sent, [*anthropic_tools(), NOTE]):
                answer.append(block)
                print(no_reply.feed(block.get("text", "")), end="", flush=True)
            print(no_reply.end(), end="")
            messages.append({"role": "assistant", "content": answer})
            calls = [block for block in answer if block["type"] == "tool_use"]
            if calls:
                messages.append({"role": "user", "content": [self.carry_out(call) for call in calls]})
            elif not no_reply.is_no_reply:
                print()

    def carry_out(self, call: Message) -> Message:
        """Return the result of a tool call; an error is a result too."""
        try:
            if call["name"] == NOTE["name"]:
                text = str(call["input"].get("text", ""))
                result: object = append_daily_note(self.workspace, text, datetime.now(UTC), ZONE).outcome
            else:
                result = self.memory.call(call["name"], call["input"])
        except MemdClientError as error:
            result = {"error": str(error)}
        return {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": json.dumps(result, ensure_ascii=False),
        }


def stream(
    system: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the blocks of an answer (pieces of text and tool calls) in the form of a provider's stream.

    The scripted model searches memory, reads on, and answers, as a real model does with these tools.
    """
    assert "memory_search" in {tool["name"] for tool in tools}
    content = messages[-1]["content"]
    is_flush = "NO_REPLY" in system
    if isinstance(content, str):
        yield _note(messages) if is_flush else _call("memory_search", {"query": content, "maxResults": 3})
    elif is_flush:
        yield from _text("NO_", "REPLY")
    else:
        yield from _answer(json.loads(content[-1]["content"]))


def _note(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = [message["content"] for message in messages[:-1] if isinstance(message["content"], str)]
    return _call("daily_note", {"text": "\n".join(f"- The user asked: {question}" for question in asked)})


def _answer(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if found.get("disabled"):
        yield from _text("Memory is unavailable: ", found["error"], " ", found["action"])
    elif "text" in found:
        yield from _text(f"From {found['path']}:\n", found["text"])
    elif found["results"]:
        best = found["results"][0]
        yield _call("memory_get", {"path": best["path"], "from": best["startLine"], "lines": 5})
    else:
        yield from _text("I looked, ", "and memory says nothing of it.")


def _text(*pieces: str) -> Iterator[dict[str, Any]]:
    yield from ({"type": "text", "text": piece} for piece in pieces)


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": name, "input": dict(arguments)}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    agent = Agent(sys.argv[1])
    for question in sys.argv[2:]:
        agent.ask(question)
