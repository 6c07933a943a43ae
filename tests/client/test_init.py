import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest

import memd_client
from tests.modules import existing


def python(program: str) -> str:
    """What a new interpreter prints."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_all_is_what_is_public() -> None:
    """What the package exports is what it has, and every name of it is there."""
    present = {
        name
        for name, value in vars(memd_client).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "TYPE_CHECKING"
    }
    assert set(memd_client.__all__) == present | {"AsyncClient", "__version__"}
    assert memd_client.__all__ == sorted(memd_client.__all__)
    for name in memd_client.__all__:
        assert getattr(memd_client, name) is not None
        assert name in dir(memd_client)


def test_version() -> None:
    """The version in the code is that of the installed distribution."""
    assert memd_client.__version__ == version("memd-client")


def test_import_is_light() -> None:
    """Importing the client brings in nothing that is slow to import."""
    heavy = [
        "asyncio",
        "dataclasses",
        "httpx",
        "importlib.metadata",
        "inspect",
        "logging",
        "memd",
        "numpy",
        "platformdirs",
        "rich",
        "structlog",
        "subprocess",
    ]
    # typing_extensions is no dependency, but where something else installed it, msgspec imports it.
    program = "import sys; sys.modules['typing_extensions'] = None; import memd_client; print(*sys.modules)"
    assert not set(existing(*heavy)) & set(python(program).split())


def test_asynchronous_client_comes_late() -> None:
    """AsyncClient is imported when it is asked for, by name or by a star."""
    assert (
        python("import sys; from memd_client import AsyncClient; print('asyncio' in sys.modules)") == "True"
    )
    assert (
        python("from memd_client import *; print(AsyncClient.__name__, Client.__name__)")
        == "AsyncClient Client"
    )


def test_unknown_name() -> None:
    """Other names are not there, and the error says so as usual."""
    with pytest.raises(AttributeError, match="module 'memd_client' has no attribute 'Cleint'"):
        memd_client.Cleint  # type: ignore[attr-defined]  # noqa: B018  the access is the test
