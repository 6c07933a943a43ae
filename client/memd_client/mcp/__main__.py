"""memd-mcp: the memory tools over MCP, on standard input and output."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from memd_client import tool_replies
from memd_client.conversation import __version__
from memd_client.tools import MAX_CHARS


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one MCP client until it closes its output; return the exit status."""
    # The thread that waits for input cannot be interrupted: Ctrl-C ends the process as it ends any other.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = _parser(os.environ).parse_args(argv)
    if sys.stdin is None or sys.stdout is None:
        return 0  # the client is gone already
    # What is wrong with the command line is told before it loads.
    from memd_client.mcp import server  # noqa: PLC0415

    if sys.stdin.isatty():
        sys.stderr.write(
            "memd-mcp speaks MCP; it is started by a client: memd-ctl mcp install --client ...\n"
        )
    from memd_client.asynchronous import AsyncClient  # noqa: PLC0415  likewise

    given = {"agent": options.agent, "session_key": options.session_key, "max_chars": options.max_chars}
    try:
        answers = server.Answers(AsyncClient(options.socket), **given, writer=options.write or None)
    except ValueError as error:
        # An agent goes on with the tools that only read.
        sys.stderr.write(f"memd-mcp: {error}; memory_append is left out.\n")
        answers = server.Answers(AsyncClient(options.socket), **given)
    server.run(answers)
    return 0


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memd-mcp",
        description="Give an MCP client long-term memory: memory_search, memory_get and memory_status, over stdio.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"memd-mcp {__version__}")
    add(
        "--agent",
        metavar="ID",
        default=environ.get("MEMD_AGENT") or None,
        help="whose memory (else MEMD_AGENT, the session key's, the only agent, or main)",
    )
    add(
        "--session-key",
        metavar="KEY",
        default=environ.get("MEMD_SESSION_KEY"),  # also empty: then it names a conversation that nobody knows
        help="the conversation that asks (else MEMD_SESSION_KEY, or you, the owner)",
    )
    add(
        "--socket",
        metavar="PATH",
        default=environ.get("MEMD_SOCKET") or None,
        help="where the daemon listens (else MEMD_SOCKET, or the usual place)",
    )
    add(
        "--max-chars",
        metavar="N",
        type=_chars,
        default=environ.get("MEMD_MAX_CHARS") or None,
        help=f"characters of a reply at most (else MEMD_MAX_CHARS, or as memd is configured: {MAX_CHARS})",
    )
    add(
        "--write",
        metavar="NAME",
        default=environ.get("MEMD_WRITE") or None,
        help="let this writer append to today's note, for a private --session-key alone (else MEMD_WRITE, or nobody)",
    )
    return parser


def _chars(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) >= tool_replies.LEAST_CHARS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a whole number from {tool_replies.LEAST_CHARS} up")


if __name__ == "__main__":
    sys.exit(main())
