"""Commands that other programs start."""

import subprocess
import sys
from pathlib import Path

import pytest

from memd.ctl.integrations.own_commands import program


@pytest.mark.parametrize(("script", "module"), [("memd-mcp", "memd_client.mcp"), ("memd-ctl", "memd.ctl")])
def test_a_script_is_named_by_its_absolute_path(script: str, module: str) -> None:
    """It is there, and runs without a PATH."""
    command = program(script, module)
    assert command == [str(Path(sys.executable).with_name(script))]
    ran = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env={}, cwd="/")
    assert ran.stdout.startswith(script)


@pytest.mark.parametrize("module", ["memd_client.mcp", "memd.ctl"])
def test_without_the_script_it_is_the_module(module: str) -> None:
    """As in a directory of packages that has no bin."""
    command = program("no-such-script", module)
    assert Path(command[0]).is_absolute()
    assert command[1:] == ["-m", module]
    subprocess.run([*command, "--version"], capture_output=True, check=True, cwd="/")
