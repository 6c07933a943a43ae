"""Whether the configuration can be read and says what memd knows."""

from pathlib import Path

from memd.config.load import ConfigError, load, location
from memd.config.settings import Config
from memd.ctl.doctor.finding import Finding, Scene, right, wrong
from memd.ctl.output.humanize import counted
from memd.inspection.probe import ProbeResult

NAME = "config.file"


def read(scene: Scene) -> Config | ConfigError:
    """The configuration, or everything that is wrong with it."""
    places = scene.places
    try:
        return load(places.config, scene.environ, places.home)
    except ConfigError as error:
        return error


def check(result: ProbeResult, scene: Scene) -> Finding:
    """Which file it is, and every fault in it. Pure but for asking whether the file is there."""
    file, _ = location(scene.places.config, scene.environ, scene.places.home)
    name = scene.shown(file)
    config, error = result.first(Config), result.first(ConfigError)
    if config is not None:
        agents = f"{counted(len(config.agents), 'agent')}: {', '.join(sorted(config.agents))}"
        if config.file is None:
            return right(NAME, f"no {name}: built-in defaults hold ({agents})")
        return right(NAME, f"{name} is right ({agents})")
    if result.timed_out:
        return wrong(
            NAME,
            f"{name} cannot be read: the disk {result.trouble}",
            f"Mount the file system again (`df {file.parent}` hangs as well), or name another file with --config.",
        )
    return wrong(NAME, f"{name}: {result.trouble}" if error is None else str(error), _fix(file, scene))


def _fix(file: Path, scene: Scene) -> str:
    if not file.exists():
        return f"Write one to start from: {scene.ctl('config', 'init')}"
    return f"Mend {scene.shown(file)}, then look again: {scene.ctl('config', 'check')}"
