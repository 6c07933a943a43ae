"""memd-ctl embed."""

import json
from pathlib import Path

import pytest

from memd_client.messages import Embed, Embedding, EmbedReport, Failure, Request
from tests.client.scripted_server import serving
from tests.ctl.answers import answering
from tests.ctl.conftest import Run

_REPORT = EmbedReport(agents={"work": Embedding(), "main": Embedding(state="paused", reason="one\nline")})


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        (["pause"], Embed(action="pause")),
        (["resume", "--agent", "main"], Embed(action="resume", agent="main")),
        (["--agent", "main", "confirm"], Embed(action="confirm", agent="main")),
        (["batch", "on"], Embed(action="batch_on")),
    ],
)
def test_it_says_what_was_typed(run: Run, address: Path, typed: list[str], asked: Embed) -> None:
    """And prints how each agent stands now."""
    heard: list[Request] = []
    with serving(address, answering(_REPORT, heard=heard)):
        code, out, _ = run("embed", *typed)
    assert (code, heard) == (0, [asked])
    assert out == "main: paused: one; line\nwork: working\n"


def test_json_gives_the_report(run: Run, address: Path) -> None:
    """Every field named."""
    with serving(address, answering(_REPORT)):
        document = json.loads(run("embed", "pause", "--json").out)
    assert document["data"]["agents"]["main"]["state"] == "paused"
    assert document["data"]["agents"]["work"]["batch"] is None


def test_a_refusal_is_an_error(run: Run, address: Path) -> None:
    """Told as it is."""
    with serving(address, answering(Failure(code="bad_request", message="nothing is embedded"))):
        code, _, err = run("embed", "resume")
    assert code != 0
    assert "nothing is embedded" in err


@pytest.mark.parametrize("typed", [[], ["off"], ["batch"], ["batch", "off"]])
def test_nonsense_is_a_usage_error(run: Run, typed: list[str]) -> None:
    """Batches turn themselves off."""
    assert run("embed", *typed)[0] == 2
