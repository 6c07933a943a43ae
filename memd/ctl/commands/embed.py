"""memd-ctl embed: have embedding pause or go on, confirm what it costs, turn batch jobs on again."""

from memd.ctl.call import Call
from memd.ctl.output import reply_text
from memd.ctl.output.humanize import one_line, visible
from memd.ctl.output.terminal import Outcome
from memd_client.messages import EmbedAction, EmbedReport

_ACTIONS: dict[str, EmbedAction] = {
    "pause": "pause",
    "resume": "resume",
    "confirm": "confirm",
    "batch": "batch_on",
}


def run(call: Call) -> Outcome:
    """Say it to the daemon."""
    with call.client() as memd:
        report = memd.embed(_ACTIONS[call.options.action], call.options.agent)
    return Outcome(report, text(report))


def text(report: EmbedReport) -> str:
    """The state of embedding of each agent, a line each."""
    return "\n".join(
        f"{visible(agent)}: {visible(one_line(reply_text.state_in_words(embedding)))}"
        for agent, embedding in sorted(report.agents.items())
    )
