"""Whether the configuration can be read and says what memd knows."""

from collections.abc import Mapping
from pathlib import Path

from memd.config.load import ConfigError, load, location
from memd.config.settings import Config
from memd.ctl.doctor.finding import Finding, right, wrong
from memd.ctl.doctor.scene import Scene
from memd.ctl.output.humanize import counted
from memd.inspection.timeouts import StillRunning, WorkFailed

NAME = "config.file"


def read(scene: Scene) -> Config | ConfigError:
    """The configuration, or everything that is wrong with it."""
    places = scene.places
    try:
        return load(places.config, scene.environ, places.home)
    except ConfigError as error:
        return error


def judged(outcome: Config | ConfigError | WorkFailed | StillRunning, scene: Scene) -> Finding:
    """Which file it is, and every fault in it. Pure."""
    file = _file(scene.places.config, scene.environ, scene.places.home)
    match outcome:
        case Config(file=None, agents=agents):
            return right(NAME, f"no {scene.shown(file)}: built-in defaults hold ({_agents(list(agents))})")
        case Config(agents=agents):
            return right(NAME, f"{scene.shown(file)} is right ({_agents(list(agents))})")
        case ConfigError() as error:
            return wrong(NAME, str(error), _fix(file, scene))
        case StillRunning(patience_s=patience_s):
            return wrong(
                NAME,
                f"{scene.shown(file)} cannot be read: the disk gave no answer within {patience_s:g} s",
                f"Mount the file system again (`df {file.parent}` hangs as well), or name another file with --config.",
            )
        case WorkFailed(error=error):
            return wrong(
                NAME, f"{scene.shown(file)} cannot be read ({type(error).__name__})", _fix(file, scene)
            )


def _file(named: Path | None, environ: Mapping[str, str], home: Path) -> Path:
    file, _ = location(named, environ, home)
    return file


def _agents(names: list[str]) -> str:
    return f"{counted(len(names), 'agent')}: {', '.join(sorted(names))}"


def _fix(file: Path, scene: Scene) -> str:
    if not file.exists():
        return f"Write one to start from: {scene.ctl('config', 'init')}"
    return f"Mend {scene.shown(file)}, then look again: {scene.ctl('config', 'check')}"
