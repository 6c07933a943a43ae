"""memd-ctl reload: bring all that the configuration file says into force."""

from memd.ctl.call import Call
from memd.ctl.failures import BAD_CONFIG, Failed
from memd.ctl.output.humanize import shown, visible
from memd.ctl.output.terminal import Outcome
from memd_client.messages import Reloaded

_TIMEOUT_S = 30.0


def run(call: Call) -> Outcome:
    """Have the daemon read the file, and wait until it is in force."""
    told = reloaded(call)
    file = "the built-in defaults" if told.config is None else visible(shown(told.config, call.places.home))
    text = f"memd follows {file}; " + (
        f"new in force: {visible(', '.join(told.changed))}." if told.changed else "nothing had changed."
    )
    return Outcome({"config": told.config, "changed": told.changed}, text)


def reloaded(call: Call) -> Reloaded:
    """What came into force.

    Raises:
        Failed: the configuration cannot be used.
        MemdClientError: the daemon cannot be asked.
    """
    with call.client(_TIMEOUT_S) as memd:
        told = memd.reload()
    if told.error is not None:
        raise Failed(
            "bad_config",
            f"memd keeps its old configuration, since the new one is wrong:\n{told.error}",
            "Mend the file, then run this again.",
            exit_code=BAD_CONFIG,
        )
    return told
