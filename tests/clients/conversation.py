"""What a model is asked and what it replies, whichever the protocol; and the replies of the stand-in."""

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant"]


_WRAPPER = "tool_call"  # calls a tool that is not offered but found, in Qwen Code and OpenClaw


class Tool(msgspec.Struct, frozen=True):
    """A tool that the program offers to the model."""

    name: str
    namespace: str | None = None  # Codex offers the tools of an MCP server under a name of their own
    schema: Any = None

    @property
    def full_name(self) -> str:
        """Both names."""
        return self.name if self.namespace is None else f"{self.namespace}.{self.name}"


class Said(msgspec.Struct, frozen=True):
    """A text of a request."""

    role: Role
    text: str


class Called(msgspec.Struct, frozen=True):
    """A call that the model made before."""

    name: str
    arguments: Any = None

    @property
    def is_of_memory(self) -> bool:
        """Whether it calls a tool of memd, also through another tool."""
        return "memory_" in self.name or (self.name == _WRAPPER and "memory_" in json.dumps(self.arguments))


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool replied, as the program hands it to the model."""

    text: str


Item = Said | Called | ToolResult


class ModelRequest(msgspec.Struct, frozen=True):
    """One request to the model."""

    tools: tuple[Tool, ...]
    items: tuple[Item, ...]  # in their order; the system's first
    streams: bool = True

    def texts(self, *roles: Role) -> str:
        """Everything that these roles say in it."""
        return "\n".join(item.text for item in self.items if isinstance(item, Said) and item.role in roles)

    def since(self, prompt: str) -> tuple[Item, ...]:
        """What came after the last message that contains a prompt."""
        last = max(
            (at for at, item in enumerate(self.items) if isinstance(item, Said) and prompt in item.text),
            default=len(self.items),
        )
        return self.items[last:]

    def memory_tool(self, name: str) -> Tool | None:
        """A tool of memd: one that is offered, or one that a search for tools has found."""
        offered = (tool for tool in self.tools if tool.name.endswith(name) and "memd" in tool.full_name)
        found = re.search(
            rf"\b(?:mcp_{{1,2}})?memd_{{1,2}}{name}\b", self.texts("system", "user") + self.results()
        )
        return next(offered, None) or (Tool(found[0]) if found else None)

    def call(self, name: str, arguments: Mapping[str, Any]) -> "ToolCall":
        """A call of a tool of memd, through another tool where the program wants that.

        Raises:
            AssertionError: the tool is not known.
        """
        tool = self.memory_tool(name)
        assert tool is not None, f"{name} is not offered"
        wrapper = next((one for one in self.tools if one.name == _WRAPPER), None)
        if tool in self.tools or wrapper is None:
            return ToolCall(tool, arguments)
        names = wrapper.schema["properties"]
        inner = {("name" if "name" in names else "id"): tool.name}
        return ToolCall(wrapper, {**inner, ("arguments" if "arguments" in names else "args"): arguments})

    def offers_memory(self) -> bool:
        """Whether memd's tools can be called right away."""
        return any(tool.name.endswith("memory_search") and "memd" in tool.full_name for tool in self.tools)

    def results(self) -> str:
        """Everything that tools replied."""
        return "\n".join(item.text for item in self.items if isinstance(item, ToolResult))


class ToolCall(msgspec.Struct, frozen=True):
    """A reply that calls a tool."""

    tool: Tool
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The arguments as JSON."""
        return json.dumps(self.arguments)


Reply = str | ToolCall

_NAMES = ("memory_search", "memory_get", "memory_status")
_TOOL_SEARCH: Mapping[str, Mapping[str, Any]] = {
    "ToolSearch": {
        "query": "select:" + ",".join(f"mcp__memd__{name}" for name in _NAMES),
    },
    "list_mcp_resources": {},  # of Codex, which has no search: it may ask its model before its servers are there
    "tool_search": {"query": "memory search memd"},
}
"""Programs that offer few tools have one that finds the others; its arguments."""
Step = Callable[[ModelRequest], ToolCall]


_SEARCHES = 10  # a server may still be starting
_THINKS_S = 1.0  # no model replies at once


class Exchange(msgspec.Struct, frozen=True):
    """A message of the user, the tools that the model calls for it one after the other, and its answer."""

    prompt: str
    answer: str
    steps: tuple[Step, ...] = ()

    def reply(self, request: ModelRequest) -> Reply:
        """What the model says next. Tools that are not offered are searched for; if none are found, it answers."""
        called = [item for item in request.since(self.prompt) if isinstance(item, Called)]
        calls = [item.name for item in called]
        done = sum(item.is_of_memory for item in called)
        if done == len(self.steps):
            return self.answer
        search = next((tool for tool in request.tools if tool.name in _TOOL_SEARCH), None)
        wanted = search is not None and not request.offers_memory() and request.memory_tool(_NAMES[0]) is None
        if search is not None and wanted and calls.count(search.name) < _SEARCHES:
            time.sleep(_THINKS_S)
            # The same call again and again would be taken for a loop.
            more = (
                {"max_results": 5 + calls.count(search.name)} if "query" in _TOOL_SEARCH[search.name] else {}
            )
            return ToolCall(search, {**_TOOL_SEARCH[search.name], **more})
        if request.memory_tool("memory_search") is None:
            return self.answer
        return self.steps[done](request)


def calling(name: str, **arguments: Any) -> Step:
    """Call a tool of memd."""

    def step(request: ModelRequest) -> ToolCall:
        return request.call(name, arguments)

    return step
