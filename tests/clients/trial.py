"""Has a program talk with the stand-in model in a house where memd is connected, and keeps what can be judged."""

import secrets
import string
import time

import msgspec

from tests.clients.conversation import Exchange, ModelRequest, ToolCall, ToolResult, calling
from tests.clients.house import Ended, House
from tests.clients.install import registry
from tests.clients.model import StandInModel
from tests.clients.programs import Program
from tests.daemon.contents import contents

FACT = "The staging database is PostgreSQL 17 on the host heron."
TODAY = "The release train leaves on Thursday."
NEWER = "99.1.0"  # the version of the daemon after an upgrade
_NOTE = "MEMORY.md"


class Turn(msgspec.Struct, frozen=True):
    """A turn of the index."""

    path: str
    role: str
    text: str


class Observed(msgspec.Struct):
    """All that a trial showed."""

    program: Program
    version: str
    first: Exchange
    second: Exchange
    secrets: tuple[str, ...]
    installed: list[Ended] = []  # memd-ctl's commands
    listing: Ended | None = None
    runs: list[Ended] = []
    first_requests: list[ModelRequest] = []
    second_requests: list[ModelRequest] = []
    refused: list[str] = []  # hosts that are neither this one nor npm's registry
    turns: list[Turn] = []
    files: list[str] = []  # of the index
    leaks: list[str] = []  # files of memd in which a secret stands
    kept: bool = False  # whether the program's own files hold the secrets
    seconds: float = 0.0

    def results(self, requests: list[ModelRequest], exchange: Exchange) -> list[str]:
        """What memd's tools replied in an exchange, as the model got it."""
        if not requests:
            return []
        return [
            item.text
            for item in requests[-1].since(exchange.prompt)
            if isinstance(item, ToolResult) and "_memd" in item.text
        ]


def observe(program: Program, version: str, house: House, model: StandInModel) -> Observed:
    """Connect the program, talk twice, kill memd before the second talk, start it in its middle and then upgrade it."""
    began = time.monotonic()
    hidden = _secrets()
    first = Exchange(
        "On which host is the PostgreSQL of the staging database?",
        f"It is on heron. Do not show {hidden[0]} to anybody.",
        (
            calling("memory_search", query="host of the staging database"),
            calling("memory_get", path=_NOTE),
            calling("memory_status"),
        ),
    )
    read = calling("memory_get", path=_NOTE)

    def restarted(request: ModelRequest) -> ToolCall:
        house.memd("up")
        return read(request)

    status = calling("memory_status")

    def upgraded(request: ModelRequest) -> ToolCall:
        house.upgrade(NEWER)
        return status(request)

    second = Exchange(
        f"And which version is it? {hidden[1]} is the key of that host.",
        f"It is version 17. The keys {hidden[2]} and {hidden[3]} are older.",
        (calling("memory_search", query="version of the staging database"), restarted, upgraded, read),
    )
    seen = Observed(program, version, first, second, hidden)
    _prepare(house, program)
    seen.installed = [
        house.memd("up"),
        house.memd("mcp", "install", "--client", program.name),
        *([house.memd("hook", "install", "--client", program.name)] if program.hooks else []),
    ]
    if program.listing:
        seen.listing = house.program(*program.listing)
    model.expect(first)
    model.expect(second)
    seen.runs.append(house.program(*program.ask(first.prompt, False)))
    house.kill_daemon()
    seen.runs.append(house.program(*program.ask(second.prompt, True)))
    house.memd("up")
    house.memd("sync")
    house.memd("down")
    seen.first_requests, seen.second_requests = model.requests_for(first), model.requests_for(second)
    seen.refused = sorted(set(model.refused) - {f"{registry()}:443"})
    _look_at_index(seen, house)
    seen.leaks = [
        str(file.relative_to(house.state))
        for file in sorted(house.state.rglob("*"))
        if file.is_file() and any(secret.encode() in file.read_bytes() for secret in hidden)
    ]
    seen.kept = all(_stands_in(house, secret) for secret in hidden)
    seen.seconds = time.monotonic() - began
    return seen


def _prepare(house: House, program: Program) -> None:
    preset = f'"{program.preset}"' if program.preset else ""
    house.write("notes/MEMORY.md", f"# Memory\n\n{FACT}\n")
    house.write(f"notes/memory/{time.strftime('%Y-%m-%d')}.md", f"# Today\n\n{TODAY}\n")
    house.write(
        ".config/memd/config.toml",
        '[defaults]\nprovider = "none"\n\n[agents.main]\nworkspace = "~/notes"\nsources = ["memory", "sessions"]\n\n'
        f"[agents.main.sessions]\npresets = [{preset}]\n",
    )


def _secrets() -> tuple[str, ...]:
    """Secrets of four kinds, other ones each time."""
    letters = string.ascii_letters + string.digits

    def some(count: int, of: str = letters) -> str:
        return "".join(secrets.choice(of) for _ in range(count))

    return (
        f"ghp_{some(36)}",
        f"sk-ant-api03-{some(93)}AA",
        f"AKIA{some(16, string.ascii_uppercase + '234567')}",
        f"xoxb-{some(12, string.digits)}-{some(12, string.digits)}-{some(24)}",
    )


def _look_at_index(seen: Observed, house: House) -> None:
    (index,) = (house.state / "agents").glob("main.sqlite")
    for path, held in contents(index).items():
        if path.endswith(" (turns)"):
            seen.turns += [
                Turn(path.removesuffix(" (turns)"), turn.context.split(" ")[-2], turn.text) for turn in held
            ]
        else:
            seen.files.append(path)


def _stands_in(house: House, secret: str) -> bool:
    own = (house.state, house.home / "notes")
    return any(
        secret.encode() in file.read_bytes()
        for file in house.home.rglob("*")
        if file.is_file() and not any(file.is_relative_to(place) for place in own)
    )
