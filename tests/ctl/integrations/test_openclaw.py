"""OpenClaw's configuration with the plugin and without it again; its agents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memd.ctl.integrations.json_edit import NotEditable, document, find, with_value
from memd.ctl.integrations.openclaw import (
    OpenClawPlaces,
    Undo,
    agents_in,
    places_of,
    plugin_files,
    read_config,
    state_in,
    undo_of,
    with_plugin,
    without_plugin,
)
from tests.bounds import shipped

DIRECTORY, SOCKET = "/h/.openclaw/extensions/memd", "/run/user/1/memd/memd.sock"
PLUGINS = {
    "load": {"paths": [DIRECTORY]},
    "entries": {"memd": {"enabled": True, "config": {"socket": SOCKET}}},
    "slots": {"memory": "memd"},
}
TEXTS = [
    "",
    "{}",
    "{}\n",
    '{"agents":{}}',
    '{\n  "plugins": {}\n}\n',
    "{ // mine\n  agents: {list: [{id: 'a'}]}, /* x */\n}\n",
    '{\r\n\t"plugins": {\r\n\t\t"slots": {"memory": "memory-lancedb", "contextEngine": "legacy"}, // mine\r\n\t},\r\n}',
    '{"plugins": {"load": {"paths": ["~/a"]}, "entries": {"x": {"apiKey": "k3y"}}, "allow": ["x"]}}',
    '{"plugins": {"entries": {"memory-core": {"config": {"dreaming": {"enabled": false, "phases": {}}}}}}}',
    "{\n  plugins: {\n    load: {paths: []},\n    entries: {memd: {enabled: false, config: {timeoutMs: 500}}},\n  },\n}\n",
]


def plugins(text: str) -> Any:
    """What a configuration says of plugins."""
    return document(text, comments=True).get("plugins")


def installed(text: str, before: Undo | None = None, socket: str = SOCKET) -> tuple[str, Undo]:
    """The configuration with the plugin, and what leads back."""
    steps = with_plugin(text, DIRECTORY, socket)
    return steps[-1], undo_of(steps, DIRECTORY, before, was_missing=not text)


@pytest.mark.parametrize("text", TEXTS)
def test_the_file_has_its_bytes_again(text: str) -> None:
    """Also when it was installed twice, and with another socket; no value of others is kept."""
    once, undo = installed(text)
    state = state_in(document(once, comments=True), DIRECTORY)
    assert (state.slot, state.is_loaded, state.is_enabled, state.socket) == ("memd", True, True, SOCKET)
    assert "k3y" not in repr(undo)
    assert installed(once, undo) == (once, undo)
    moved, again = installed(once, undo, "/other")
    assert without_plugin(once, DIRECTORY, undo) == text
    assert without_plugin(moved, DIRECTORY, again) == text


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_there_before_is_not_known_of_an_installation_whose_file_is_lost(text: str) -> None:
    """The plugin is taken out all the same: a configuration that names what is not there is none that OpenClaw starts with."""
    once, _ = installed(text)
    again, undo = installed(once)
    assert again == once
    out = without_plugin(once, DIRECTORY, undo)
    assert DIRECTORY not in out
    assert state_in(document(out, comments=True), DIRECTORY).slot != "memd"


@pytest.mark.parametrize("text", TEXTS)
def test_of_a_plugin_that_was_turned_off_and_on_again_the_rest_stays(text: str) -> None:
    """A person has changed the file meanwhile: what was there before is not put back by its places."""
    once, undo = installed(text)
    off = with_value(once, ("plugins", "entries", "memd", "enabled"), False, comments=True)
    again, undo = installed(off, undo)
    out = without_plugin(again, DIRECTORY, undo)
    before, after = (document(one or "{}", comments=True) for one in (text, out))
    assert state_in(after, DIRECTORY).slot == state_in(before, DIRECTORY).slot
    entry = ("plugins", "entries", "memd")
    assert find(after, entry) == find(before, entry)
    assert DIRECTORY not in out


def test_a_change_that_was_not_made_is_undone_by_nothing() -> None:
    """Of two installations the first was ended before it wrote the configuration; a person has changed that since."""
    _, early = installed("{}")
    mine = '{"plugins": {"slots": {"memory": "memory-lancedb"}}}'
    once, undo = installed(mine, early)
    assert without_plugin(once, DIRECTORY, undo) == mine
    assert without_plugin(mine, DIRECTORY, early) == mine


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("is_known", [True, False])
def test_what_others_wrote_since_stays(text: str, is_known: bool) -> None:
    """The plugin is taken out of it; what it took the place of comes back, if that is known."""
    once, undo = installed(text)
    changed = once.replace("{", '{"new": 1,', 1)
    out = without_plugin(changed, DIRECTORY, undo if is_known else None)
    said = document(out, comments=True)
    assert said.pop("new") == 1
    assert "memd" not in out or "timeoutMs" in text
    if is_known:
        wanted = {key: value for key, value in document(text, comments=True).items() if value != {}}
        if "paths: []" in text:
            wanted["plugins"].pop("load")
        assert {key: value for key, value in said.items() if value != {}} == wanted


def test_what_is_written() -> None:
    """Into an empty file, and to a list of plugins that are allowed."""
    assert document(installed("")[0]) == {"plugins": PLUGINS}
    with_others = plugins(installed('{"plugins": {"allow": ["x"]}}')[0])
    assert with_others == {"allow": ["x", "memd"], **PLUGINS}
    assert plugins(installed('{"plugins": {"allow": []}}')[0])["allow"] == []


def test_who_has_turned_dreaming_off_does_not_have_it_on_again() -> None:
    """OpenClaw reads its settings where the memory has its own; what is there already stays."""
    entries = {"memory-core": {"config": {"dreaming": {"enabled": False, "frequency": "0 4 * * *"}}}}
    once, _ = installed(json.dumps({"plugins": {"entries": entries}}))
    assert plugins(once)["entries"]["memd"]["config"]["dreaming"] == {
        "enabled": False,
        "frequency": "0 4 * * *",
    }
    own = {**entries, "memd": {"config": {"dreaming": {"enabled": True}}}}
    kept, _ = installed(json.dumps({"plugins": {"entries": own}}))
    assert plugins(kept)["entries"]["memd"]["config"]["dreaming"] == {"enabled": True}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"plugins": {"enabled": false}}', "turns all plugins off"),
        ('{"plugins": {"deny": ["memd"]}}', "denies the plugin"),
        ('{"plugins": {"$include": "./plugins.json5"}}', "in another file"),
        ('{"plugins": {"slots": []}}', "must be an object"),
        ("{", "not JSON"),
    ],
)
def test_what_a_person_decided_is_left_alone(text: str, why: str) -> None:
    """With the reason."""
    with pytest.raises(NotEditable, match=re.escape(why)):
        with_plugin(text, DIRECTORY, SOCKET)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, ("memory-core", False, True)),
        ({**PLUGINS, "enabled": False}, ("memd", True, False)),
        ({**PLUGINS, "deny": ["memd"]}, ("memd", True, False)),
        ({**PLUGINS, "allow": ["x"]}, ("memd", True, False)),
        ({**PLUGINS, "entries": {"memd": {"enabled": False}}}, ("memd", True, False)),
        ({**PLUGINS, "slots": {"memory": "none"}}, ("none", True, True)),
        ([], ("memory-core", False, True)),
    ],
)
def test_the_state_is_what_openclaw_makes_of_it(table: Any, expected: tuple[str, bool, bool]) -> None:
    """Whoever turns the plugin off."""
    state = state_in({"plugins": table}, DIRECTORY)
    assert (state.slot, state.is_loaded, state.is_enabled) == expected


HOME = Path("/h")
PLACES = OpenClawPlaces(HOME / ".openclaw", HOME / ".openclaw" / "openclaw.json")


@pytest.mark.parametrize(
    ("config", "environ", "expected"),
    [
        ({}, {}, {"main": "/h/.openclaw/workspace"}),
        ({}, {"OPENCLAW_WORKSPACE_DIR": "/w"}, {"main": "/w"}),
        ({"agent": {"workspace": "~/clawd"}}, {}, {"main": "/h/clawd"}),
        (
            {"agents": {"list": [{"id": "Work", "workspace": "/w"}, {"id": "home", "default": True}, {"x": 1}]}},
            {},
            {"work": "/w", "home": "/h/.openclaw/workspace"},
        ),
        (
            {"agents": {"defaults": {"workspace": "~/c"}, "entries": {"main": {}, "b": {"workspace": " ~/b "}, "c": None}}},
            {},
            {"main": "/h/c", "b": "/h/b", "c": "/h/c/c"},
        ),
        ({"agents": {"entries": {"b": {}, "c": {}}}}, {}, {"b": "/h/.openclaw/workspace", "c": "/h/.openclaw/workspace-c"}),
    ],
)  # fmt: skip
def test_agents_have_the_workspaces_that_openclaw_gives_them(
    config: dict[str, Any], environ: dict[str, str], expected: dict[str, str]
) -> None:
    """In old and new versions of its configuration."""
    found = agents_in(config, PLACES, environ, HOME)
    assert {name: str(workspace) for name, (workspace, _) in found.items()} == expected


def test_the_home_that_is_in_use(tmp_path: Path) -> None:
    """A variable may name it, or the file alone."""
    assert places_of({}, tmp_path).plugin == tmp_path / ".openclaw" / "extensions" / "memd"
    assert places_of({"OPENCLAW_STATE_DIR": "/s"}, tmp_path).config == Path("/s/openclaw.json")
    named = places_of({"OPENCLAW_CONFIG_PATH": "/etc/o.json"}, tmp_path)
    assert (named.home, named.config) == (tmp_path / ".openclaw", Path("/etc/o.json"))


def test_the_plugin_brings_the_client_and_nothing_that_it_does_not_need() -> None:
    """It is all of it: the client has no dependencies."""
    files = plugin_files()
    assert {
        "index.js",
        "openclaw.plugin.json",
        "package.json",
        "node_modules/memd-client/index.js",
    } <= files.keys()
    assert not [name for name in files if "test" in name]


def test_included_files_are_read_as_openclaw_reads_them(tmp_path: Path) -> None:
    """Later files go before earlier ones, and what stands beside an include before both; ten deep at most."""
    deepest = shipped("memd.ctl.integrations.openclaw._DEEPEST_INCLUDE")
    (tmp_path / "a.json5").write_text("{x: 1, y: {a: 1, b: 1}}")
    (tmp_path / "b.json5").write_text("{x: 2, y: {b: 2}}")
    main = tmp_path / "main.json5"
    main.write_text(
        "{k: {$include: ['./a.json5', 'b.json5'], y: {c: 3}}, list: [{$include: './a.json5', x: 0}]}"
    )
    assert read_config(main) == {
        "k": {"x": 2, "y": {"a": 1, "b": 2, "c": 3}},
        "list": [{"x": 0, "y": {"a": 1, "b": 1}}],
    }
    for number in range(deepest):
        (tmp_path / f"{number}.json").write_text(f"{{$include: '{number + 1}.json'}}")
    (tmp_path / f"{deepest}.json").write_text("{end: 1}")
    assert read_config(tmp_path / "0.json") == {"end": 1}
    main.write_text("{$include: '0.json'}")
    with pytest.raises(NotEditable, match="without end"):
        read_config(main)
