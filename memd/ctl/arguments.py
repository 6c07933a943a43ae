"""Defines the commands and options of memd-ctl."""

import argparse
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from memd import VERSION
from memd.ctl.argument_types import (
    count,
    key_value,
    line_count,
    line_number,
    max_results,
    non_empty,
    port,
    presets,
    seconds,
    share,
)
from memd.ctl.failures import UsageError

COMMANDS: Mapping[str, str] = {
    "up": "start memd, or make a directory searchable",
    "down": "stop memd",
    "reload": "bring all that the configuration says into force",
    "status": "how everything is",
    "sync": "bring the index up to date, and wait until it is",
    "reindex": "rebuild the index; the old one answers meanwhile",
    "embed": "have embedding pause or go on, or pay for what waits",
    "search": "find what memory says about a question",
    "get": "read lines of an indexed file",
    "tags": "list the tags of notes, and the notes that they link to",
    "explain": "search, and explain how each hit got its rank",
    "eval": "measure search on questions whose answers are known",
    "web": "open a page in the browser that shows what is remembered",
    "demo": "show what memd does, on a workspace made for it",
    "doctor": "find what is wrong, and say how to fix it",
    "config": "check, show or write the configuration",
    "logs": "print the log of a daemon that `up` started",
    "redact": "show what would be taken out of a text as secret",
    "service": "have the system start memd at login, and look after it",
    "mcp": "give an MCP client memd's tools",
    "hook": "bring memory into the conversations of an agent's program",
    "openclaw": "make memd the memory of OpenClaw",
    "shared": "keep one memory for many machines on a PostgreSQL server",
    "completion": "have the shell complete memd-ctl, and man show its manual page",
    "help": "show a page of the documentation, or list the pages",
}
"""Every command, with what it does."""

_WITHOUT_AGENT = frozenset(
    {"completion", "down", "reload", "demo", "config", "logs", "service", "openclaw", "help", "web", "shared"}
)
_VALUED = frozenset({"--agent", "--config", "--socket", "--state-dir", "--timeout"})
MCP_CLIENTS = (
    *("amp", "claude", "claude-desktop", "cline", "codex", "copilot", "cursor", "gemini", "goose"),
    *("openclaw", "opencode", "qwen", "vscode", "windsurf", "zed"),
)
EDITORS = ("vscode", "cursor", "zed", "idea", "obsidian", "none")
HOOK_CLIENTS = ("claude", "codex", "gemini", "opencode", "qwen")


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors instead of printing them."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}.", f"See `{self.prog} --help`.")


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        # argparse creates one per argument, as a check, and would import shutil for the width: 3 ms per call.
        super().__init__(prog, width=_columns() - 2)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"memd-ctl {VERSION}")
        parser.exit()


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; options that were not given have their defaults.

    Raises:
        UsageError: it is invalid.
    """
    # An option may precede or follow the command, so neither parser may set a default for it.
    given = argparse.Namespace(
        agent=None, json=False, config=None, socket=None, state_dir=None, timeout=None, no_color=False
    )
    options, unknown = make_parser(command=_command(argv)).parse_known_args(argv, given)
    if unknown:
        raise UsageError(
            f"unrecognized arguments: {' '.join(unknown)}.", f"See `memd-ctl {options.command} --help`."
        )
    if options.agent is not None and options.command in _WITHOUT_AGENT:
        raise UsageError(f"--agent says nothing to `memd-ctl {options.command}`")
    return options


def is_hook(argv: Sequence[str]) -> bool:
    """Return whether a command line, valid or not, is a hook's, which a program runs."""
    plain = _plain(argv)
    return plain[:1] == ["hook"] and plain[1:2] not in (["install"], ["uninstall"])


def _plain(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line without global options and their values."""
    words = iter(argv)
    plain = []
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            plain.append(word)
    return plain


def _command(argv: Sequence[str]) -> str | None:
    """Return the command of a command line; None: there is none, or --help may ask for all commands."""
    if any(word == "--help" or word.startswith("-h") for word in argv):
        return None
    return next((word for word in _plain(argv)[:1] if word in COMMANDS), None)


def make_parser(*, is_page: bool = False, command: str | None = None) -> argparse.ArgumentParser:
    """Create the parser of all command lines.

    Args:
        is_page: Whether it is for a manual page: options that all commands have are listed once, at the top.
        command: Only this command's parser is created, since creating all takes 20 ms of processor time; None: all.
    """
    options = _common()
    common = argparse.ArgumentParser(add_help=False) if is_page else options
    top = _Parser(
        prog="memd-ctl",
        description="Ask memd, the long-term memory of AI agents, and look after it.",
        parents=[options],
        allow_abbrev=False,
        formatter_class=_Help,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    summaries = COMMANDS if command is None else {command: COMMANDS[command]}
    for name, parser in _subparsers(top, common, "command", summaries).items():
        if name in _OPTIONS:
            _OPTIONS[name](parser)
        elif name in _ACTIONS:
            _ACTIONS[name](parser, common)
    return top


def _flag(
    parser: argparse.ArgumentParser | argparse._MutuallyExclusiveGroup, *names: str, summary: str
) -> None:
    parser.add_argument(*names, action="store_true", help=summary)


def _add_status(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "-w", "--watch", summary="draw it again each second, until Ctrl-C")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "--keep", summary="keep the workspace, and say where it is")


def _add_web(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "--no-browser", summary="only print the address; it opens the page once, for a minute")
    parser.add_argument(
        "--editor", choices=EDITORS, help="what opens a note from the page (else one that is installed)"
    )


def _add_openclaw(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "install": "put memd into OpenClaw's memory slot",
        "uninstall": "give OpenClaw its own memory again",
        "status": "say whether OpenClaw's memory is memd's; exit status 1 if it is not",
    }
    actions = _subparsers(parser, common, "action", summaries)
    _flag(actions["install"], "--write", summary="give it memory_append, too, which adds to today's note")


def _add_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topic", metavar="TOPIC", nargs="?", type=non_empty, help="the name of a page (else all names)"
    )


def _add_completion(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "install": "write completion for bash, zsh and fish, and a man page, to your data directory",
        "uninstall": "delete them",
    }
    actions = _subparsers(parser, common, "action", summaries)
    _flag(actions["install"], "--print", summary="print the files, and write nothing")


def _add_redact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=non_empty,
        help="a note or a transcript, taken as text; - is stdin",
    )
    _flag(parser, "--explain", summary="name of each secret the rule that finds it, and why")
    parser.add_argument(
        "--scan",
        metavar="PATH",
        nargs="+",
        type=non_empty,
        help="any files and directories: where secrets stand; exit status 4 if there are any",
    )


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=False)
    add = common.add_argument_group("options of every command").add_argument
    add("--agent", metavar="ID", type=non_empty, help="whose memory (else the only agent, or main)")
    add("--json", action="store_true", help="one JSON document on stdout")
    add("--config", metavar="FILE", type=non_empty, help="the configuration (else MEMD_CONFIG)")
    add("--socket", metavar="PATH", type=non_empty, help="where the daemon listens (else MEMD_SOCKET)")
    add(
        "--state-dir",
        metavar="DIR",
        type=non_empty,
        help="where indexes and log are kept (else MEMD_STATE_DIR)",
    )
    add("--timeout", metavar="S", type=seconds, help="give up after so many seconds")
    add("--no-color", action="store_true", help="no colours; NO_COLOR does the same")
    return common


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        type=non_empty,
        help="with MEMORY.md or memory/ inside it becomes the agent's workspace, else it is searched as well",
    )
    _flag(parser, "-y", "--yes", summary="do not ask before an agent changes")


def _add_sync(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "--no-wait", summary="only ask for it")
    _flag(parser, "--no-vectors", summary="do not wait for vectors")
    _flag(parser, "--force", summary="look into every file, changed or not")


def _add_reindex(parser: argparse.ArgumentParser) -> None:
    _flag(parser, "--force", summary="embed again too, although the vectors are kept")
    _flag(parser, "--dry-run", summary="only print what it would cost")


def _add_embed(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "pause": "ask the provider for nothing more, also after a restart",
        "resume": "go on, and ask a provider that refused again",
        "confirm": "let what waits for a confirmation be sent, and paid for",
        "batch": "have batch jobs again that were turned off after failures",
    }
    actions = _subparsers(parser, common, "action", summaries)
    actions["batch"].add_argument("switch", choices=("on",), help="they turn themselves off")


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="a question, or words of the answer")
    parser.add_argument("-n", "--max-results", metavar="N", type=max_results, help="1 to 50")
    parser.add_argument("--min-score", metavar="S", type=share, help="0 to 1: the least score of a hit")
    parser.add_argument("--source", choices=("memory", "sessions"), help="search only there")
    parser.add_argument(
        "--now",
        metavar="DAY",
        type=non_empty,
        help="the day on which it is asked, such as 2026-02-09 (else today)",
    )
    when = 'a date, a time, 7d, "last week", 上周 or "May 2026"'
    parser.add_argument("--since", metavar="TIME", type=non_empty, help=f"nothing older: {when}")
    parser.add_argument("--until", metavar="TIME", type=non_empty, help="nothing later: likewise")
    parser.add_argument(
        "--sort", choices=("relevance", "time"), default="relevance", help="time: the newest hit first"
    )
    add = functools.partial(parser.add_argument, action="append", default=[])
    add(
        "--tag",
        metavar="TAG",
        type=non_empty,
        help="only notes with this tag, or one below it; again: with all",
    )
    add(
        "--path",
        metavar="GLOB",
        type=non_empty,
        help='only these files, such as "memory/ops/**"; again: these, too',
    )
    add(
        "--property",
        metavar="KEY=VALUE",
        type=key_value,
        help="only notes whose front matter says so; again: all",
    )
    _add_session_key(parser)


def _add_search_alone(parser: argparse.ArgumentParser) -> None:
    _add_search(parser)
    _flag(parser, "--strict", summary="leave out weak hits, which probably do not answer")


def _add_explain(parser: argparse.ArgumentParser) -> None:
    _add_search(parser)
    _flag(parser, "-a", "--all", summary="every candidate that was cut, not only the first")


def _add_eval(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", type=non_empty, help="questions, as TOML or JSONL")
    parser.add_argument(
        "--mode",
        choices=("hybrid", "keyword", "vector"),
        action="append",
        help="measure it alone (else all three)",
    )
    parser.add_argument(
        "--beside",
        metavar="AGENT",
        type=non_empty,
        help="measure another agent, with settings of its own, too",
    )
    parser.add_argument(
        "--make", metavar="N", type=line_number, help="print N questions made of the notes, to be mended"
    )
    _flag(parser, "-a", "--all", summary="every question whose evidence was not seen, not only the first")


def _add_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="PATH",
        type=non_empty,
        help="as search printed it; PATH:FROM-TO and PATH#LFROM-LTO work too",
    )
    parser.add_argument(
        "--from", dest="start_line", metavar="N", type=line_number, help="the first line, from 1"
    )
    parser.add_argument("--lines", metavar="N", type=line_count, help="how many lines at most")
    _add_session_key(parser)


def _add_config(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "check": "report every fault of the configuration",
        "show": "print the configuration that is in force, defaults included",
        "init": "write a configuration to start from",
        "import": "write what another program's configuration says of memory as memd's",
    }
    actions = _subparsers(parser, common, "action", summaries)
    actions["import"].add_argument(
        "--from", dest="source", choices=("openclaw",), required=True, help="the program"
    )
    _flag(actions["import"], "--print", summary="print it, and change nothing")
    _flag(actions["import"], "--force", summary="replace the file that is there")
    for name in ("check", "show"):
        actions[name].add_argument(
            "file", metavar="FILE", nargs="?", type=non_empty, help="another file than the one in force"
        )
    _flag(actions["init"], "--force", summary="replace the file that is there")
    for name, what in (("memory", "notes"), ("sessions", "transcripts")):
        choice = actions["init"].add_mutually_exclusive_group()
        choice.add_argument(
            f"--{name}",
            metavar="AGENTS",
            type=presets,
            help=f"search the {what} of these agents, such as claude-code,codex; do not ask",
        )
        choice.add_argument(
            f"--no-{name}", dest=name, action="store_const", const=(), help=f"search no other agent's {what}"
        )


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--lines", metavar="N", type=count, help="only the last N lines")
    _flag(parser, "-f", "--follow", summary="print what is added, until Ctrl-C")


def _add_service(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "install": "have systemd or launchd start memd at login, and now",
        "uninstall": "stop doing so",
        "start": "start it now",
        "stop": "stop it until the next login",
        "restart": "stop it and start it again",
        "status": "say what is installed, and how it is",
        "logs": "print what it wrote",
    }
    actions = _subparsers(parser, common, "action", summaries)
    for name in ("install", "uninstall", "start", "stop", "restart"):
        _flag(actions[name], "--print", summary="print what would be written and run, and change nothing")
    for name in ("install", "uninstall"):
        _flag(
            actions[name], "--force", summary="also files that memd did not write, or that were changed since"
        )
    _flag(actions["install"], "--hardened", summary="let it write to nothing but its state (systemd)")
    _add_logs(actions["logs"])


def _add_mcp(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {"install": "add memd to a client's configuration", "uninstall": "take it out again"}
    summaries["status"] = "say of each client that is installed whether it has memd"
    summaries["serve"] = (
        "answer over HTTP on this machine, for clients that cannot start a process, until Ctrl-C"
    )
    summaries |= {"token": "print the token by which a client may ask `serve`"}
    actions = _subparsers(parser, common, "action", summaries)
    actions["serve"].add_argument(
        "--port", metavar="N", type=port, default=8737, help="where (else 8737); 0: any that is free"
    )
    choice = actions["token"].add_mutually_exclusive_group()
    _flag(choice, "--rotate", summary="replace it: the old one is no longer in force")
    _flag(choice, "--revoke", summary="take it out of force")
    _flag(choice, "--list", summary="whose tokens there are")
    _add_session_key(actions["token"])
    for name in ("install", "uninstall"):
        help_text = "the program that starts it"
        actions[name].add_argument("--client", choices=MCP_CLIENTS, required=True, help=help_text)
    _add_session_key(actions["install"])
    _flag(
        actions["install"],
        "--trust",
        summary="have the client call the tools, which only read, without asking",
    )
    _flag(
        actions["install"],
        "--write",
        summary="give it memory_append, too, which adds to today's note; needs a private --session-key",
    )
    _flag(actions["install"], "--print", summary="print the entry, and change nothing")


def _add_hook(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "session-start": "have the index up to date, and bring today's and yesterday's notes",
        "user-prompt": "bring what memory has for a message",
        "pre-compact": "ask for the index to be brought up to date",
        "session-end": "likewise",
        "install": "have a program call the hooks",
        "uninstall": "remove the hooks",
    }
    events = _subparsers(parser, common, "event", summaries)
    for name in ("install", "uninstall"):
        events[name].add_argument("--client", choices=HOOK_CLIENTS, required=True, help="the program")
    _flag(events["install"], "--print", summary="print the settings, and change nothing")
    for name, event in events.items():
        if name != "uninstall":
            _add_session_key(event)
    for name in ("user-prompt", "install"):
        _flag(events[name], "--sessions", summary="of transcripts too, not of notes alone")
        events[name].add_argument(
            "--min-score", metavar="S", type=share, help="0 to 1: the least score of a hit (else 0.45)"
        )


def _add_session_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--session-key",
        metavar="KEY",
        type=non_empty,
        help="the conversation that asks (else you, the owner)",
    )


def _add_shared(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    summaries = {
        "init": "make schema, roles and policies in a database, as its administrator",
        "grant": "let a member use a memory, and write the DSN of its role",
        "revoke": "take a memory from a member, or all of them",
        "status": "say what the server holds for this machine's role",
    }
    actions = _subparsers(parser, common, "action", summaries)
    for name in ("init", "grant", "revoke"):
        actions[name].add_argument(
            "--admin-dsn-file",
            metavar="FILE",
            type=non_empty,
            required=True,
            help="one line, readable by you alone: the connection string of an administrator of the database",
        )
    _flag(actions["init"], "--print", summary="print the SQL, and change nothing")
    _flag(actions["init"], "-y", "--yes", summary="do it (else it only says what it would do)")
    for name in ("grant", "revoke"):
        actions[name].add_argument("member", metavar="MEMBER", type=non_empty, help="a-z, digits and _")
    actions["grant"].add_argument("memory", metavar="MEMORY", type=non_empty, help="such as alice/main")
    actions["revoke"].add_argument("memory", metavar="MEMORY", type=non_empty, nargs="?", help="else all")
    actions["grant"].add_argument("rights", choices=("read", "write"), help="write: publish and search")
    actions["grant"].add_argument(
        "--dsn-file", metavar="OUT", type=non_empty, help="where the DSN goes, with a new password"
    )
    _flag(actions["grant"], "--force", summary="replace OUT")
    for name in ("init", "status"):
        actions[name].add_argument(
            "--shared",
            metavar="NAME",
            type=non_empty,
            help="which [shared.NAME] of the configuration (else the only one)",
        )
    actions["init"].add_argument(
        "--member",
        metavar="NAME",
        type=non_empty,
        default="publisher",
        help="what this machine is called as a member",
    )


def _subparsers(
    parser: argparse.ArgumentParser, common: argparse.ArgumentParser, dest: str, summaries: Mapping[str, str]
) -> dict[str, argparse.ArgumentParser]:
    """Create a parser for each word that may follow; return them by word.

    Args:
        parser: The parser of the previous words.
        common: The options of all commands.
        dest: The attribute for the word.
        summaries: The summary of each word.
    """
    words = parser.add_subparsers(dest=dest, required=True, metavar=dest.upper(), prog=parser.prog)
    return {
        word: words.add_parser(
            word,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            parents=[common],
            allow_abbrev=False,
            formatter_class=_Help,
        )
        for word, summary in summaries.items()
    }


def _columns() -> int:
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


# The options of each command.
_OPTIONS: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "up": _add_up,
    "status": _add_status,
    "sync": _add_sync,
    "reindex": _add_reindex,
    "search": _add_search_alone,
    "explain": _add_explain,
    "get": _add_get,
    "tags": _add_session_key,
    "eval": _add_eval,
    "demo": _add_demo,
    "logs": _add_logs,
    "web": _add_web,
    "redact": _add_redact,
    "help": _add_help,
}
# Commands with subcommands.
_ACTIONS: Mapping[str, Callable[[argparse.ArgumentParser, argparse.ArgumentParser], None]] = {
    "embed": _add_embed,
    "config": _add_config,
    "completion": _add_completion,
    "service": _add_service,
    "mcp": _add_mcp,
    "hook": _add_hook,
    "openclaw": _add_openclaw,
    "shared": _add_shared,
}
