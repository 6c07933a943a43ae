"""Tries the real programs of agents with memd, and prints what holds for which.

    python -m tests.clients                    # all, in the versions of versions.json
    python -m tests.clients claude codex       # only these
    python -m tests.clients --seconds 600      # those for which there is time
    python -m tests.clients --write            # and put the table into docs/connect.md
    python -m tests.clients --latest           # the newest versions, which are kept in versions.json

Programs are installed by npm into a cache, and talk with a stand-in model on the loopback. What npm cannot get is not tried, and is
named. Of a program for which something does not hold, the whole trial is made once more: and fails if something does not hold again.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.clients import install
from tests.clients.house import house_of
from tests.clients.judge import Verdict, judged, table
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS, Program
from tests.clients.trial import Observed, observe

PAGE = Path(__file__).parents[2] / "memd" / "docs" / "connect.md"
_ENOUGH_S = 90.0  # for a trial; with less time left, none is begun


class Trial(NamedTuple):
    """What a program showed, and how that is judged."""

    seen: Observed
    verdicts: Mapping[str, Verdict]

    @property
    def failed(self) -> set[str]:
        """What does not hold."""
        return {name for name, verdict in self.verdicts.items() if verdict.holds is False}


def main() -> int:
    """Run it; 0 if everything holds that could be tried."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.clients",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--latest", action="store_true", help="take the newest versions, and keep them")
    parser.add_argument("--write", action="store_true", help="put the table into docs/connect.md")
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all of it")
    parser.add_argument("--cache", type=Path, default=install.CACHE, help="where programs are installed")
    parser.add_argument("--keep", type=Path, help="leave houses and requests in this directory")
    options = parser.parse_args()
    named = options.programs or list(PROGRAMS)
    if unknown := [name for name in named if name not in PROGRAMS]:
        parser.error(f"no such program: {', '.join(unknown)}")
    wanted = [PROGRAMS[name] for name in named]
    versions = install.versions()
    if options.latest:
        versions |= {program.name: install.latest(program.package) for program in wanted}
        install.write_versions(versions)
    try:
        _node(versions, options.cache)
    except install.NotInstalled as failure:
        _tell(f"NOT TRIED: {', '.join(program.title for program in wanted)}: {failure}")
        return 0
    trials, missing = tried_all(
        wanted, versions, options.cache, options.keep, time.monotonic() + options.seconds
    )
    _tell(table(trials))
    for name, why in missing.items():
        _tell(f"NOT TRIED: {name}: {why}")
    if options.write and not missing and len(trials) == len(PROGRAMS):
        PAGE.write_text(with_table(PAGE.read_text("utf-8"), table(trials)), "utf-8")
    return int(any(trial.failed for trial in trials))


def tried_all(
    wanted: Sequence[Program], versions: Mapping[str, str], cache: Path, keep: Path | None, until: float
) -> tuple[list[Trial], dict[str, str]]:
    """The trials that could be made, and why others could not, by the titles of the programs."""
    trials: list[Trial] = []
    missing: dict[str, str] = {}
    for program in wanted:
        if until - time.monotonic() < _ENOUGH_S:
            missing[program.title] = "no time is left"
            continue
        try:
            trial = _tried(program, versions, cache, keep, until)
            if trial.failed and until - time.monotonic() >= _ENOUGH_S:
                _tell(f"{program.title} is tried again")
                again = _tried(program, versions, cache, keep, until)
                trial = trial if trial.failed & again.failed else again
        except install.NotInstalled as failure:
            missing[program.title] = str(failure)
            continue
        if trial.failed and time.monotonic() >= until:
            missing[program.title] = "it was not done when the time was over"
        else:
            trials.append(trial)
    return trials, missing


def with_table(page: str, rows: str) -> str:
    """A page with the table in the place of the one that begins with an empty heading."""
    before, begin, rest = page.partition("\n| | ")
    lines = f"{begin}{rest}".lstrip("\n").splitlines(keepends=True)
    end = next((at for at, line in enumerate(lines) if not line.startswith("|")), len(lines))
    assert begin, "the page has a table of programs"
    return f"{before}\n{rows}\n{''.join(lines[end:])}"


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _node(versions: Mapping[str, str], cache: Path) -> Path:
    kind = f"node-{install.system()}"
    return install.installed(kind, versions["node"], cache) / kind / "bin"


def _tried(
    program: Program, versions: Mapping[str, str], cache: Path, keep: Path | None, until: float
) -> Trial:
    began = time.monotonic()
    node = _node(versions, cache)
    version = versions[program.name]
    executable = install.installed(program.package, version, cache) / program.executable
    _tell(f"{program.title} {version} is installed ({time.monotonic() - began:.0f} s)")
    command = [str(node / "node"), str(executable)] if program.is_node else [str(executable)]
    with StandInModel() as model, house_of(program, command, node, model.url, keep, until) as house:
        seen = observe(program, version, house, model)
        if keep is not None:
            (keep / f"{program.name}-requests.jsonl").write_bytes(b"\n".join(model.bodies))
    trial = Trial(seen, judged(seen))
    _tell(f"{program.title} {seen.version}: {seen.seconds:.0f} s")
    for name in sorted(trial.failed):
        _tell(f"  {name}: {trial.verdicts[name].why}")
    return trial


if __name__ == "__main__":
    sys.exit(main())
