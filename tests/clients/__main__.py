"""Tries the real programs of agents with memd, and prints what holds for which.

    python -m tests.clients                    # all, in the versions of versions.json
    python -m tests.clients claude codex       # only these
    python -m tests.clients --latest           # the newest versions, which are kept in versions.json

Programs are installed by npm into a cache, and talk with a stand-in model on the loopback.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.clients import install
from tests.clients.house import house_of
from tests.clients.judge import Verdict, judged, matrix
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS, Program
from tests.clients.trial import Observed, observe


def main() -> int:
    """Run it; 0 if everything holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--latest", action="store_true", help="take the newest versions, and keep them")
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
    trials = []
    for program in wanted:
        seen, verdicts = _tried(program, versions, options.cache, options.keep)
        trials.append((seen, verdicts))
        _tell(f"{program.title} {seen.version}: {seen.seconds:.0f} s")
        for name, verdict in verdicts.items():
            if verdict.holds is False:
                _tell(f"  {name}: {verdict.why}")
    _tell(matrix(trials))
    return int(any(verdict.holds is False for _, verdicts in trials for verdict in verdicts.values()))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tried(
    program: Program, versions: dict[str, str], cache: Path, keep: Path | None
) -> tuple[Observed, dict[str, Verdict]]:
    kind = f"node-{install.system()}"
    began = time.monotonic()
    node = install.installed(kind, versions["node"], cache) / kind / "bin"
    version = versions[program.name]
    executable = install.installed(program.package, version, cache) / program.executable
    _tell(f"{program.title} {version} is installed ({time.monotonic() - began:.0f} s)")
    command = [str(node / "node"), str(executable)] if program.is_node else [str(executable)]
    with StandInModel() as model, house_of(program, command, node, model.url, keep) as house:
        seen = observe(program, version, house, model)
        if keep is not None:
            (keep / f"{program.name}-requests.jsonl").write_bytes(b"\n".join(model.bodies))
    return seen, judged(seen)


if __name__ == "__main__":
    sys.exit(main())
