"""Reports what fills a context window: every file, tool and kind of message, with its size.

Sizes are estimates (see quarter_tokens), so their sum differs from the provider's count, which is shown
beside it if known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memd_client.context.bootstrap import Bootstrap, Part
from memd_client.context.conversation import Message, as_json, quarters
from memd_client.token_estimate import estimate_tokens

_ROLES = ("system", "user", "assistant", "tool")
_LARGEST = 10  # tool results that are listed individually


class ToolSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a tool's definition."""

    name: str
    description_chars: int
    schema_chars: int  # of the JSON schema of its arguments
    tokens: int


class RoleSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of all messages of one role."""

    role: str
    messages: int
    chars: int
    images: int
    tokens: int


class ResultSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of one tool result."""

    tool: str
    place: int  # number of the message, from 1
    chars: int
    tokens: int


class FileSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a workspace file in the context."""

    part: Part  # name, state and raw size
    chars: int  # injected characters, including the heading
    tokens: int


class ContextReport(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a context window; token counts are estimates."""

    window_tokens: int  # 0: unknown
    instructions_chars: int  # system prompt without the workspace files
    instructions_tokens: int
    files: tuple[FileSize, ...]
    tools: tuple[ToolSize, ...]
    roles: tuple[RoleSize, ...]
    results: tuple[ResultSize, ...]  # largest first

    @property
    def files_tokens(self) -> int:
        """Estimated tokens of all workspace files."""
        return sum(file.tokens for file in self.files)

    @property
    def tools_tokens(self) -> int:
        """Estimated tokens of all tools."""
        return sum(tool.tokens for tool in self.tools)

    @property
    def history_tokens(self) -> int:
        """Estimated tokens of all messages."""
        return sum(role.tokens for role in self.roles)

    @property
    def used_tokens(self) -> int:
        """Estimated tokens of everything."""
        return self.instructions_tokens + self.files_tokens + self.tools_tokens + self.history_tokens


def report(
    *,
    window_tokens: int,
    instructions: str = "",
    workspace: Bootstrap | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    messages: Sequence[Message] = (),
) -> ContextReport:
    """Measure what is about to be sent.

    Args:
        window_tokens: The model's context window; 0: unknown.
        instructions: The system prompt without the workspace files.
        workspace: These files.
        tools: Tool definitions in the form of OpenAI or Anthropic.
        messages: The conversation, after pruning.
    """
    return ContextReport(
        window_tokens=max(0, window_tokens),
        instructions_chars=len(instructions),
        instructions_tokens=estimate_tokens(instructions),
        files=tuple(
            FileSize(part=part, chars=len(part.text), tokens=estimate_tokens(part.text))
            for part in (workspace.parts if workspace else ())
        ),
        tools=tuple(map(_tool_size, tools)),
        roles=tuple(size for role in _ROLES if (size := _role_size(role, messages)).messages),
        results=_largest_results(messages),
    )


def as_list(context: ContextReport) -> str:
    """Return the text of ``/context list``: a line for each part, and one for each file."""
    lines = [
        f"Context: {_used(context)}",
        f"  instructions  {_tokens(context.instructions_tokens)}",
        f"  workspace     {_tokens(context.files_tokens)}, {_count(len(context.files), 'file')}",
        *(f"    {_file_line(file)}" for file in context.files),
        f"  tools         {_tokens(context.tools_tokens)}, {_count(len(context.tools), 'tool')}",
        f"  history       {_tokens(context.history_tokens)}, {_count(_messages(context), 'message')}",
    ]
    return "\n".join(lines) + "\n"


def as_detail(context: ContextReport) -> str:
    """Return the text of ``/context detail``: the list, with every tool, every role and the largest tool results."""
    lines = [
        *(
            f"    {tool.name}: description {tool.description_chars:,}, schema {tool.schema_chars:,} characters, "
            f"{_tokens(tool.tokens)}"
            for tool in sorted(context.tools, key=lambda tool: (-tool.tokens, tool.name))
        ),
        "By role:",
        *(
            f"    {role.role}: {_count(role.messages, 'message')}, {role.chars:,} characters, "
            f"{_count(role.images, 'image')}, {_tokens(role.tokens)}"
            for role in context.roles
        ),
        "Largest results of tools:",
        *(
            f"    {result.tool} (message {result.place}): {result.chars:,} characters, {_tokens(result.tokens)}"
            for result in context.results
        ),
    ]
    return as_list(context) + "Tools:\n" + "\n".join(lines) + "\n"


def footer(context: ContextReport, *, reported_tokens: int | None = None) -> str:
    """Return one line to show under an answer.

    Args:
        context: What was sent.
        reported_tokens: The provider's count; None: unknown.
    """
    cut = sum(file.part.state in {"truncated", "left_out"} for file in context.files)
    parts = [_used(context, reported_tokens), f"workspace {_tokens(context.files_tokens)}"]
    if cut:
        parts[-1] += f" ({_count(cut, 'file')} cut)"
    parts += [f"tools {_tokens(context.tools_tokens)}", f"history {_tokens(context.history_tokens)}"]
    return " · ".join(parts)


def _used(context: ContextReport, reported: int | None = None) -> str:
    used = context.used_tokens if reported is None else reported
    used_text = _tokens(used) if reported is None else f"{used:,} tokens"
    if not context.window_tokens:
        return f"{used_text}, window not known"
    return f"{used_text} of {context.window_tokens:,} ({100 * used / context.window_tokens:.0f} %)"


def _file_line(file: FileSize) -> str:
    part = file.part
    match part.state:
        case "missing":
            return f"{part.name}: missing"
        case "unreadable":
            return f"{part.name}: unreadable"
        case "empty":
            return f"{part.name}: empty"
        case "left_out":
            return f"{part.name}: {part.raw:,} {part.raw_unit}, left out: the total was used up"
        case "truncated":
            injected = f"{file.chars:,} characters injected, {_tokens(file.tokens)}"
            return f"{part.name}: {part.raw:,} {part.raw_unit}, cut: {injected}"
        case "whole":
            return f"{part.name}: {part.raw:,} {part.raw_unit}, {_tokens(file.tokens)}"


def _tool_size(tool: Mapping[str, Any]) -> ToolSize:
    inner = tool.get("function")
    function = inner if isinstance(inner, Mapping) else tool
    schema = function.get("parameters", function.get("input_schema"))
    description = str(function.get("description") or "")
    schema_text = "" if schema is None else as_json(schema)
    name = str(function.get("name") or "?")
    return ToolSize(
        name=name,
        description_chars=len(description),
        schema_chars=len(schema_text),
        tokens=estimate_tokens(name + description + schema_text),
    )


def _role_size(role: str, messages: Sequence[Message]) -> RoleSize:
    own = [message for message in messages if message.role == role]
    return RoleSize(
        role=role,
        messages=len(own),
        chars=sum(len(message.text) for message in own),
        images=sum(message.images for message in own),
        tokens=-(-sum(map(quarters, own)) // 4),
    )


def _largest_results(messages: Sequence[Message]) -> tuple[ResultSize, ...]:
    sizes = [
        ResultSize(
            tool=message.tool or "?",
            place=place,
            chars=len(message.text),
            tokens=-(-quarters(message) // 4),
        )
        for place, message in enumerate(messages, 1)
        if message.role == "tool"
    ]
    return tuple(sorted(sizes, key=lambda size: (-size.tokens, size.place))[:_LARGEST])


def _messages(context: ContextReport) -> int:
    return sum(role.messages for role in context.roles)


def _tokens(n: int) -> str:
    return f"~{n:,} tokens"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
