"""Looks at one thing and prints what it finds, a fact a line in JSON.

A process of its own, because what it tries may crash, or hang on a dead disk: who asked ends it, and has what was found
by then. The question comes on stdin.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import msgspec

from memd.config.load import ConfigError, load
from memd.config.settings import AgentSettings, Config
from memd.inspection.facts import (
    AnyFact,
    Disk,
    Engine,
    InspectionBegun,
    InspectionEnd,
    InspectionRequest,
    Model,
    RootsScan,
)
from memd.inspection.timeouts import BackgroundWork, StillRunning, WorkFailed


def main() -> None:
    """Answer one question; what hangs goes with the process."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=InspectionRequest)
    for fact in chain([InspectionBegun()], ASPECTS[sys.argv[1]](question), [InspectionEnd()]):
        sys.stdout.buffer.write(msgspec.json.encode(fact) + b"\n")
        sys.stdout.buffer.flush()
    os._exit(0)


def _engine(_: InspectionRequest) -> Iterator[AnyFact]:
    from memd.store.sqlite_selftest import try_engine  # noqa: PLC0415 - each process loads what it is to try, and no more

    tried = try_engine()
    yield Engine(
        sqlite=tried.sqlite, apsw=tried.apsw, keywords=tried.keywords, vectors=tried.vectors, vec=tried.vec
    )


def _model(_: InspectionRequest) -> Iterator[AnyFact]:
    from memd.providers.local.thread_environment import prepare_environment  # noqa: PLC0415 - likewise

    prepare_environment(os.environ)
    from memd.providers.local.bundled_model import ModelMissing  # noqa: PLC0415 - it imports numpy, which reads the environment
    from memd.providers.local.selftest import try_model  # noqa: PLC0415 - likewise

    try:
        tried = try_model()
    except ModelMissing as missing:
        yield Model(fault=str(missing))
        return
    yield Model(**msgspec.structs.asdict(tried))


def _roots(question: InspectionRequest) -> Iterator[AnyFact]:
    from memd.inspection.roots import RootsLook, disk_of  # noqa: PLC0415 - likewise

    disk = BackgroundWork(lambda: disk_of(Path(question.state)), question.patience_s)
    state = Path(question.state)
    looks = [
        RootsLook(agent, settings, question.now, state)
        for agent, settings in sorted(_agents(question).items())
    ]
    works = [(look, BackgroundWork(look.look, question.patience_s)) for look in looks]
    for look, work in works:
        match work.outcome():
            case RootsScan() as ground:
                yield ground
            case StillRunning():
                yield look.hanging()
            case WorkFailed(error=error):
                raise error
    if isinstance(on := disk.outcome(), Disk):
        yield on


def _stores(question: InspectionRequest) -> Iterator[AnyFact]:
    from memd.inspection.stores import (  # noqa: PLC0415 - likewise
        agents_with_store,
        look_at_cache,
        look_at_store,
    )

    state = Path(question.state)
    deadline = time.monotonic() + question.patience_s
    settings = _agents(question)
    yield look_at_cache(state, deadline - time.monotonic())
    for agent in sorted({*settings, *agents_with_store(state)}):
        yield look_at_store(state, agent, settings.get(agent), deadline - time.monotonic())


def _programs(question: InspectionRequest) -> Iterator[AnyFact]:
    from memd.inspection.programs import look_at_qmd  # noqa: PLC0415 - likewise

    for agent, settings in sorted(_agents(question).items()):
        if settings.backend == "qmd":
            yield look_at_qmd(
                agent,
                settings,
                state=Path(question.state),
                environ=os.environ,
                home=Path(question.home),
                patience_s=question.patience_s,
            )


def _agents(question: InspectionRequest) -> dict[str, AgentSettings]:
    """The agents of the configuration; none where it is wrong or out of reach, which is told elsewhere."""
    file = None if question.config is None else Path(question.config)
    # Half of the time: what lies on another disk than the configuration is to be looked at all the same.
    reading = BackgroundWork(lambda: load(file, os.environ, Path(question.home)), question.patience_s / 2)
    match reading.outcome():
        case Config(agents=agents):
            return agents
        case WorkFailed(error=ConfigError()) | StillRunning():
            return {}
        case WorkFailed(error=error):
            raise error


ASPECTS: Mapping[str, Callable[[InspectionRequest], Iterator[AnyFact]]] = {
    "engine": _engine,
    "model": _model,
    "roots": _roots,
    "stores": _stores,
    "programs": _programs,
}
"""What can be looked at."""


if __name__ == "__main__":
    main()
