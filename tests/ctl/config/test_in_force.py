"""The settings in force, and where they come from."""

import tomllib
from typing import Any

import pytest

from memd.config.toml_lines import Key, lines
from memd.ctl.config.in_force import ValuePlace, masked, origin, origins, text
from memd.ctl.output.terminal import uncoloured

_LINES = lines("""\
[daemon]
log_level = "info"
[defaults]
query = { max_results = 3 }
extra_paths = []
exclude = []
[agents.main]
query.min_score = 0.1
extra_paths = ["x"]
exclude = ["y"]
""")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("daemon", "log_level"), "line 2"),
        (("agents", "main", "query", "max_results"), "line 4, [defaults]"),
        (("agents", "main", "query", "min_score"), "line 8"),
        (("agents", "main", "extra_paths"), "lines 9 and 5, [defaults]"),
        (("agents", "main", "exclude"), "line 10"),
        (("agents", "work", "exclude"), "line 6, [defaults]"),
        (("agents", "main", "model"), "default"),
    ],
)
def test_a_value_comes_from_the_nearest_place_that_says_it(key: Key, expected: str) -> None:
    """The agent, then [defaults], then memd itself."""
    assert origin(key, _LINES) == expected


_MAIN: dict[str, Any] = {
    "workspace": "/笔记",
    "weight": 0.37499999999999994,
    "rules": [{"action": "allow", "match": {"chat_type": "direct"}}],
    "a b": ['"', "\n"],
    "empty": {},
    "query": {"n": 3},
}
_TABLES = {"daemon": {"log_level": "info"}, "agents": {"main": _MAIN}}


def test_what_is_printed_is_a_configuration() -> None:
    """Tables, lists of tables, quotes and odd keys; a share without its rounding."""
    printed = text(_TABLES, {("daemon", "log_level"): 7}, {}, uncoloured)
    again = tomllib.loads(printed)
    main = again["agents"]["main"]
    assert main.pop("weight") == 0.375
    assert again["daemon"] == {"log_level": "info"}
    assert main == {name: value for name, value in _MAIN.items() if name not in {"weight", "empty"}}
    assert 'log_level = "info"  # line 7\n' in printed
    assert '\nworkspace = "/笔记"  ' in printed


def test_places_come_first() -> None:
    """As remarks, one below the other."""
    places = {"config": ValuePlace("~/c", "usual place"), "state": ValuePlace("/s", "--state-dir")}
    assert text({}, {}, places, uncoloured) == "# config  ~/c  (usual place)\n# state   /s  (--state-dir)"


def test_each_value_has_an_origin() -> None:
    """By its dotted key."""
    assert origins({"agents": {"a": {"x": 1, "t": {"y": []}}}}, {("agents", "a", "t", "y"): 3}) == {
        "agents.a.x": "default",
        "agents.a.t.y": "line 3",
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"api_key": "sk-1"}, {"api_key": "********"}),
        ({"api_key": ""}, {"api_key": ""}),
        ({"api_key_env": "NAME", "api_key_file": "/f"}, {"api_key_env": "NAME", "api_key_file": "/f"}),
        ({"headers": {"x-org": "sk-1"}}, {"headers": {"x-org": "********"}}),
        ({"remote": {"base_url": "https://ann:pw@host/v1"}}, {"remote": {"base_url": "https://********@host/v1"}}),
        ({"rules": [{"match": {"channel": None, "x": "y"}}]}, {"rules": [{"match": {"x": "y"}}]}),
        ({"workspace": "/home/a@b"}, {"workspace": "/home/a@b"}),
    ],
)  # fmt: skip
def test_secrets_are_masked(value: object, shown: object) -> None:
    """Keys, all headers, and who is named in a URL; what is not there stays away."""
    assert masked(value) == shown
