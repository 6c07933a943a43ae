"""Messages with secrets that were written down before they were tried on the rules: ``python -m tests.redact.unseen`` counts.

Those of unseen.txt are older than the rules for labels and places, whose tests have many of the same forms. Those of
unseen_later.txt were written down after those rules, and tried once. Those of unseen_blind.txt, unseen_blind_later.txt,
unseen_third.txt and unseen_fourth.txt were written by somebody who had not seen the rules; those of unseen_fifth.txt and
unseen_sixth.txt, with harmless ones that look like them, before the rules were read; those of unseen_seventh.txt after the
rules had been mended on the sixth, by the one who did so, and tried once. All have been mended on since: what they count now says nothing
of messages that nobody has seen.
"""

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.shapes import drawn

FILES: Final = (
    "unseen.txt",
    "unseen_later.txt",
    "unseen_blind.txt",
    "unseen_blind_later.txt",
    "unseen_third.txt",
    "unseen_fourth.txt",
    "unseen_fifth.txt",
    "unseen_sixth.txt",
    "unseen_seventh.txt",
)
_SECRET: Final = re.compile("⟦(~?)(.*?)⟧", re.DOTALL)


class Message(msgspec.Struct, frozen=True):
    """A message, and what is secret in it."""

    language: str
    distinctive: bool  # somebody who reads it knows what is secret
    text: str
    secrets: tuple[str, ...]


def messages(file: str) -> Iterator[Message]:
    """Those of a file: what stands in ⟦ ⟧ is secret, and behind ~ a shape of which one is drawn."""
    for number, (language, strength, body) in enumerate(_blocks(file)):
        rng = random.Random(f"0/{number}")
        secrets = [drawn(said, rng) if tilde else said for tilde, said in _SECRET.findall(body)]
        rest = iter(secrets)
        text = _SECRET.sub(lambda _, rest=rest: next(rest), body)  # type: ignore[misc]
        if strength != "harmless":
            yield Message(language, strength == "distinctive", text, tuple(secrets))


def harmless(file: str) -> list[str]:
    """Those of a file that have no secret, and look as if they had one."""
    return [body for _, strength, body in _blocks(file) if strength == "harmless"]


def _blocks(file: str) -> Iterator[tuple[str, str, str]]:
    """The language of each message, what is said of it, and the message."""
    for block in re.split("^== ", Path(__file__).with_name(file).read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = block.rstrip("\n").partition("\n")
        language, strength, *_ = head.split()
        yield language, strength, body


def left(file: str, *, distinctive: bool) -> tuple[int, list[tuple[str, str]]]:
    """How many secrets of a file's messages there are, and those that are not taken out, with their messages."""
    redactor = Redactor(Redact())
    of_kind = [message for message in messages(file) if message.distinctive is distinctive]
    found = [
        (secret, message.text)
        for message in of_kind
        for secret in message.secrets
        if secret in redactor.redact(message.text).text
    ]
    return sum(len(message.secrets) for message in of_kind), found


def main() -> int:
    """Print the share that is taken out, and what is left."""
    for file in FILES:
        for distinctive in (True, False):
            count, missed = left(file, distinctive=distinctive)
            for secret, text in missed:
                sys.stdout.write(f"{secret}: {text!r}\n")
            name = "distinctive" if distinctive else "not distinctive"
            sys.stdout.write(f"{file}, {name}: {count - len(missed)} of {count} taken out\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
