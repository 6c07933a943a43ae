from pathlib import Path
from typing import Any

import pytest

from memd.config.settings import AgentSettings
from memd.ctl.doctor.backends import judged_qmd
from memd.inspection.facts import Program
from memd_client.messages import BackendFallback, QmdStatus, VectorHealth
from tests.ctl.answers import agent
from tests.ctl.doctor.scenes import SCENE, sound

SETTINGS = AgentSettings(workspace=Path("/w"), backend="qmd")
PROGRAM = Program(agent="main", file="/usr/bin/qmd", version="qmd 2.8.3")
LOST = Program(agent="main", fault="qmd is not on the PATH of the daemon.")
QMD = QmdStatus(command="/usr/bin/qmd", version="2.8.3", collections=["memory"])
FALLBACK = BackendFallback(from_="qmd", reason="qmd is not on the PATH", since=1.0, retry_at=2.0)


def test_an_agent_without_qmd_has_no_such_check() -> None:
    """Nothing is said of what nobody asked for."""
    assert judged_qmd("main", AgentSettings(workspace=Path("/w")), None, None, SCENE) == []


@pytest.mark.parametrize(
    ("status", "program", "ok", "told"),
    [
        ({"qmd": QMD, "backend": "qmd"}, PROGRAM, True, "2.8.3 at /usr/bin/qmd answers from 1 collection"),
        ({"backend_fallback": FALLBACK}, LOST, False, "the built-in engine answers in its place"),
        (
            {"qmd": QMD, "backend": "qmd", "vector": VectorHealth(ok=False, reason="no model")},
            PROGRAM,
            False,
            "no model",
        ),
        ({}, PROGRAM, True, "not checked"),
        (None, PROGRAM, True, "qmd 2.8.3 at /usr/bin/qmd"),
        (None, LOST, False, "not on the PATH"),
        (None, None, True, "not checked"),
    ],
    ids=["answers", "fell back", "no vectors", "not ready", "found", "lost", "not looked at"],
)
def test_qmd_is_judged(status: dict[str, Any] | None, program: Program | None, ok: bool, told: str) -> None:
    """By what the daemon says of it or, without one, by whether it is found and runs."""
    said = None if status is None else agent(**status)
    (finding,) = judged_qmd("main", SETTINGS, said, program, SCENE)
    assert sound(finding) is ok
    assert told in finding.detail


@pytest.mark.parametrize(
    "told",
    [{"update_failure": "it is locked"}, {"warnings": ["collection notes: /n does not exist"]}],
    ids=["update", "warning"],
)
def test_what_qmd_cannot_do_is_told(told: dict[str, Any]) -> None:
    """Though it answers: an update that failed, a part of the configuration that is not used."""
    qmd = QmdStatus(command="/usr/bin/qmd", version="2.8.3", **told)
    (finding,) = judged_qmd("main", SETTINGS, agent(backend="qmd", qmd=qmd), PROGRAM, SCENE)
    assert not sound(finding)
    assert str(next(iter(told.values()))).strip("[']") in finding.detail


def test_who_has_no_models_is_told_how_to_do_without() -> None:
    """A mode of searching that needs none is one line of the configuration away."""
    status = agent(backend="qmd", qmd=QMD, vector=VectorHealth(ok=False, reason="no model"))
    (finding,) = judged_qmd("main", SETTINGS, status, PROGRAM, SCENE)
    assert 'search_mode = "search" in [agents.main.qmd]' in finding.fix


def test_a_qmd_that_is_found_from_here_alone_is_told() -> None:
    """What a person's shell has, a service may not have; nobody is told to install it again."""
    (finding,) = judged_qmd("main", SETTINGS, agent(backend_fallback=FALLBACK), PROGRAM, SCENE)
    assert "From here /usr/bin/qmd runs" in finding.fix
    assert "timeout_ms in [agents.main.qmd]" in finding.fix
    assert "npm install" not in finding.fix
