"""A conversation as these functions see it: who said how much, and what each tool gave.

A provider's messages become these by memd_client.context.anthropic or memd_client.context.openai; an agent with
messages of its own shape makes them itself.
"""

from typing import Literal

import msgspec

from memd_client.context.tokens import quarter_tokens

IMAGE_QUARTERS = 8_000  # what an image counts for, in quarters of a token; as OpenClaw does


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message, or one result of a tool where a provider puts several into a message."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""  # of an assistant: what it said and thought, and the arguments of its calls as JSON
    images: int = 0
    tool: str | None = None  # of a result: the name of the tool; None where it is not known
    call: str | None = None  # of a result: the id of the call


def quarters(message: Message) -> int:
    """The estimated size of a message in quarters of a token: characters, where a Chinese one counts as four."""
    return quarter_tokens(message.text) + message.images * IMAGE_QUARTERS
