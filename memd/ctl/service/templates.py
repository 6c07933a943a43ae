"""The units that memd brings along."""

from importlib import resources
from pathlib import Path

import memd
from memd.ctl.failures import Failed


def template(name: str) -> str:
    """The text of a unit, by its path below the project: ``systemd/memd.service``.

    A wheel has them beside the code. An installation that runs from a clone has them where they are in the clone.

    Raises:
        Failed: it is in neither place.
    """
    packaged = resources.files("memd") / "units" / name
    if packaged.is_file():
        return packaged.read_text("utf-8")
    cloned = Path(memd.__path__[0]).parent / name
    try:
        return cloned.read_text("utf-8")
    except OSError as error:
        raise Failed(
            "broken_installation",
            f"This installation of memd lacks {name}: it is neither in {packaged} nor at {cloned}.",
            "Install it anew: pip install --force-reinstall memd-daemon",
        ) from error
