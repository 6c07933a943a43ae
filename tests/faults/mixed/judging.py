"""What must be true between two daemons, and in the end."""

from pathlib import Path

import msgspec

from memd_client import Client
from tests.daemon.hunt import Hunt
from tests.fakes import hashing_worker
from tests.faults.life import TIMEOUT_S
from tests.faults.mixed.household import FRESH, MINE, Household, changed
from tests.faults.mixed.outside import Seen
from tests.faults.verdict import Diverged, differing, left_behind, misplaced_parts, require_none, unsound
from tests.redact.corpus import samples
from tests.wait import until

_STAYS = {
    "embeddings.sqlite",
    "memd.lock",
    *(f"agents/{name}.sqlite" for name in (*MINE, *FRESH.values())),
    # An agent that is configured no more: nobody touches what it has, or may lose the end of it.
    *(f"agents/more.sqlite{suffix}" for suffix in ("", "-wal", "-shm")),
}
_ONE_SECRET_IN = 23
_LENGTH = 12  # of a secret that is no word by chance


class Secrets(msgspec.Struct, frozen=True):
    """What is said in transcripts and must be nowhere else."""

    texts: tuple[str, ...]
    hunt: Hunt


def secrets() -> Secrets:
    """Some of every kind."""
    given = [one for one in samples(seed=11) if len(one.value) >= _LENGTH][::_ONE_SECRET_IN]
    return Secrets(tuple(one.text for one in given), Hunt(given))


def look_around(household: Household, hidden: Secrets) -> None:
    """Between two daemons: nothing of the dead one runs, and nothing secret is in any file."""
    try:
        until(lambda: not hashing_worker.running(household.directory), 10)
    except AssertionError:
        raise Diverged("the worker of a daemon that is gone runs on") from None
    met = {
        file.name: hidden.hunt.met(file.read_bytes())
        for file in (household.log, *household.state.rglob("*"))
        if file.is_file()
    }
    require_none(
        [f"{name} holds {len(ends)} secrets: {sorted(ends)[:3]}" for name, ends in met.items() if ends]
    )


def come_to_rest(household: Household) -> None:
    """Have everything indexed, and see that the daemon says nothing else."""
    with Client(household.socket, timeout=TIMEOUT_S) as client:
        until(lambda: not any(agent.rebuild for agent in client.status().agents.values()), TIMEOUT_S)
        report = client.sync()
        agents = client.status().agents
    wrong = [f"{agent}: {told}" for agent, told in agents.items() if told.rebuild or told.damaged]
    wrong += [f"{agent}: {told.vectors}" for agent, told in agents.items() if told.vectors.waiting]
    wrong += [
        f"{agent} leaves out {agents[agent].skipped}, where a fresh one leaves out {agents[fresh].skipped}"
        for agent, fresh in FRESH.items()
        if agents[agent].skipped != agents[fresh].skipped
    ]
    if report.vectors != "complete":
        wrong.append(f"all is said to be indexed, and is not: {report}")
    require_none(wrong)


def judge(household: Household, seen: Seen, hidden: Secrets) -> None:
    wrong = list(seen.met.wrong)
    touched = changed(seen.sources, household.sources())
    wrong += [f"{file} is not what was written there" for file in touched]
    for agent in MINE:
        main, fresh = household.index(agent), household.index(FRESH[agent])
        wrong += [
            f"{agent}: {one}" for one in differing(main, fresh, seen.notes[agent], hashing_worker.embed)
        ]
        wrong += [f"{agent}: {one}" for one in misplaced_parts(main, hashing_worker.embed)]
    wrong += unsound(household.state / "embeddings.sqlite")
    wrong += left_behind(household.state, _STAYS)
    wrong += _beside_the_socket(household)
    wrong += _printed(household.log)
    wrong += [
        f"{name} holds {sorted(ends)[:3]}" for name, ends in hidden.hunt.met_below(household.state).items()
    ]
    require_none(wrong)


def _beside_the_socket(household: Household) -> list[str]:
    """What daemons have left where their socket was, and in their locks, which stay."""
    locks = (household.directory / "s.lock", household.state / "memd.lock")
    wrong = [f"{lock.name} says {lock.read_text()!r}" for lock in locks if lock.read_text()]
    own = {
        "s.lock",
        "state",
        "home",
        *MINE,
        "config.toml",
        "log",
        "marker",
        "outside",
        "begun",
        "quiet",
        "seen.json",
    }
    found = sorted(entry.name for entry in household.directory.iterdir())
    return wrong + [f"{name} was left behind" for name in found if name not in own]


def _printed(log: Path) -> list[str]:
    """What no daemon should have said, whatever happened to it."""
    lines = log.read_text("utf-8", "replace").splitlines()
    bad = ('"level": "error"', '"level": "critical"', "Traceback", "landmark", "quokka")
    return [
        line[:300]
        for line in lines
        if any(sign in line for sign in bad) and "config.reload_refused" not in line
    ]
