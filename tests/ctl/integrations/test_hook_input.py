"""What an agent's program tells a hook."""

import os
import threading
import time

import pytest
from hypothesis import given

from memd.ctl.integrations.hook_input import HookInput, parsed, received
from tests.awkward.programs import HOOK_INPUTS
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            b'{"session_id": "s-1", "prompt": "which?", "hook_event_name": "UserPromptSubmit", "cwd": "/"}',
            HookInput("which?", "s-1", "UserPromptSubmit"),
        ),
        (b'{"conversation_id": "c", "user_prompt": "which?"}', HookInput("which?", "c")),
        (b'{"prompt": 5, "message": "which?", "session_id": null}', HookInput("which?")),
        (
            b'{"session_id": "' + b"x" * 999 + b'"}',
            HookInput(session="x" * shipped("memd.ctl.integrations.hook_input._NAME_CHARS")),
        ),
        (rb'{"prompt": "walnut \ud83d", "hook_event_name": "\ude00"}', HookInput("walnut ?", event="?")),
        (b"{}", HookInput()),
        (b"", HookInput()),
        (b"nonsense", HookInput()),
        (b"[1]", HookInput()),
        (b"null", HookInput()),
        (b'{"prompt": "half', HookInput()),
        (b"\xff\xfe", HookInput()),
        (b'{"prompt": "\xff", "session_id": "s"}', HookInput()),
        (b"[" * 1_000_000, HookInput()),
    ],
)
def test_what_matters_is_taken_and_the_rest_is_left(data: bytes, told: HookInput) -> None:
    """Missing, of a wrong type, or no JSON at all."""
    assert parsed(data) == told


def test_all_that_comes_is_received() -> None:
    """In whatever pieces."""
    ours, theirs = os.pipe()

    def write() -> None:
        for piece in (b'{"prompt": ', b'"which?"', b"}"):
            os.write(theirs, piece)
        os.close(theirs)

    writer = threading.Thread(target=write)
    writer.start()
    assert received(ours, time.monotonic() + 60) == b'{"prompt": "which?"}'
    writer.join()
    os.close(ours)


def test_a_writer_that_does_not_end_is_not_waited_for() -> None:
    """Longer than until the moment that was named; what came counts."""
    ours, theirs = os.pipe()
    os.write(theirs, b'{"prompt"')
    assert received(ours, time.monotonic() + 0.05) == b'{"prompt"'
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("beyond", [0, 1])
def test_what_is_too_much_is_read_and_dropped(beyond: int) -> None:
    """So that its writer does not fail."""
    ours, theirs = os.pipe()
    written = []
    size = shipped("memd.ctl.integrations.hook_input._MOST_BYTES") + beyond

    def write() -> None:
        with os.fdopen(theirs, "wb") as stream:
            written.append(stream.write(b"x" * size))

    writer = threading.Thread(target=write)
    writer.start()
    assert len(received(ours, time.monotonic() + 60)) == (0 if beyond else size)
    writer.join()
    assert written == [size]
    os.close(ours)


def test_a_descriptor_that_is_closed_gives_nothing() -> None:
    """As that of a program that has no input for its hooks."""
    ours, theirs = os.pipe()
    os.close(theirs)
    os.close(ours)
    assert received(ours, time.monotonic() + 60) == b""


@given(HOOK_INPUTS)
def test_any_input_is_read_or_empty(data: bytes) -> None:
    """Whatever a program passes, what is taken of it can be sent on."""
    told = parsed(data)
    (told.prompt + told.session + told.event).encode()
    assert len(told.session) <= 64
