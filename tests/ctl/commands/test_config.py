"""memd-ctl config."""

import json
import re
import stat
import tomllib
from pathlib import Path

import pytest

from memd.config.load import parse
from memd.ctl.config.edit import example
from tests.ctl.conftest import Run
from tests.ctl.pages import check_page


@pytest.fixture
def file(home: Path) -> Path:
    """The usual place of the configuration; there is none yet."""
    return home / ".config" / "memd" / "config.toml"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_the_example_is_written_where_it_will_be_read(run: Run, file: Path) -> None:
    """For its owner alone; and it is right."""
    code, out, err = run("config", "init")
    assert (code, err) == (0, "")
    check_page("config_init", out)
    assert file.read_text(encoding="utf-8") == example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("config", "check").code == 0


def test_a_workspace_of_openclaw_is_found(run: Run, home: Path) -> None:
    """It is what the example names."""
    (home / ".openclaw" / "workspace").mkdir(parents=True)
    assert "the workspace of OpenClaw, which is there: ~/.openclaw/workspace." in run("config", "init").out


def test_a_configuration_is_not_overwritten_unasked(run: Run, file: Path) -> None:
    """Whatever stands there, even a link to nowhere."""
    _write(file, "# mine\n")
    code, _, err = run("config", "init")
    assert code == 1
    assert "is there already" in err
    assert file.read_text(encoding="utf-8") == "# mine\n"
    data = json.loads(run("config", "init", "--force", "--json").out)["data"]
    assert (data["file"], data["replaced"], data["workspace_exists"]) == (str(file), True, False)
    assert file.read_text(encoding="utf-8") == example()
    file.unlink()
    file.symlink_to("nowhere")
    assert run("config", "init").code == 1


def test_a_named_place_is_used(run: Run, home: Path) -> None:
    """By a flag, as by MEMD_CONFIG."""
    assert run("config", "init", "--config", str(home / "my.toml")).code == 0
    assert (home / "my.toml").is_file()
    assert run("config", "check", "--config", str(home / "none.toml")).code == 78


def test_a_right_configuration_is_said_to_be(run: Run, home: Path, file: Path) -> None:
    """A workspace that does not exist yet is worth a remark, no more."""
    _write(file, f'[agents.ann]\nworkspace = "{home}"\n[agents.bob]\nworkspace = "~/none"\n')
    code, out, err = run("config", "check")
    assert code == 0
    check_page("config_check", f"stdout:\n{out}stderr:\n{err}")


def test_no_configuration_is_right_too(run: Run) -> None:
    """Built-in defaults hold."""
    code, out, _ = run("config", "check")
    assert code == 0
    assert "built-in defaults hold, 1 agent (main)" in out
    assert json.loads(run("config", "check", "--json").out)["data"]["file"] is None


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_wrong_configuration_has_its_status(run: Run, file: Path, action: str) -> None:
    """Each problem is told with its line."""
    _write(file, '[agents.main]\nworkspce = "~"\nbackend = 3\n')
    code, out, err = run("config", action)
    assert (code, out) == (78, "")
    assert "config.toml:2: agents.main.workspce is not a key memd knows" in err
    assert "config.toml:3: agents.main.backend" in err
    error = json.loads(run("config", action, "--json").out)["error"]
    assert error["type"] == "bad_config"


def test_what_is_in_force_is_shown_as_a_configuration(run: Run, home: Path, file: Path) -> None:
    """It means the same when it is read again, and each value tells where it comes from."""
    _write(
        file, '[defaults]\nquery.max_results = 9\n[agents.main]\nworkspace = "~/花"\nexclude = ["*.tmp"]\n'
    )
    code, out, err = run("config", "show")
    assert (code, err) == (0, "")
    assert out.startswith("# config  ~/.config/memd/config.toml  (usual place)\n# state ")
    assert "(--socket)\n" in out
    assert re.search(r'^workspace = ".*/花" +# line 4$', out, re.MULTILINE)
    assert re.search(r"^max_results = 9 +# line 2, \[defaults\]$", out, re.MULTILINE)
    assert re.search(r"^min_score = 0.35 +# default$", out, re.MULTILINE)
    again = parse(out, file, home)
    assert again == parse(file.read_text(encoding="utf-8"), file, home)
    assert again.agents["main"].query.max_results == 9
    data = json.loads(run("config", "show", "--json").out)["data"]
    assert data["file"] == str(file)
    assert data["agents"]["main"]["workspace"] == str(home / "花")
    assert data["origins"]["agents.main.query.max_results"] == "line 2, [defaults]"
    assert data["places"]["config"]["origin"] == "usual place"


def test_the_environment_is_named_where_it_decides(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that stands behind a flag does not."""
    (home / "my.toml").write_text("", encoding="utf-8")
    monkeypatch.setenv("MEMD_CONFIG", str(home / "my.toml"))
    monkeypatch.setenv("MEMD_STATE_DIR", str(home / "state"))
    monkeypatch.setenv("MEMD_SOCKET", str(home / "s"))
    places = json.loads(run("config", "show", "--json").out)["data"]["places"]
    assert {name: place["origin"] for name, place in places.items()} == {
        "config": "MEMD_CONFIG",
        "state": "MEMD_STATE_DIR",
        "socket": "--socket",
    }


def test_built_in_defaults_are_shown_as_such(run: Run) -> None:
    """There is no file they came from."""
    out = run("config", "show").out
    assert out.startswith(
        "# config  built-in defaults: there is no ~/.config/memd/config.toml  (usual place)\n"
    )
    assert tomllib.loads(out)["agents"]["main"]["query"]["max_results"] == 6


def test_agents_that_search_the_same_notes_are_remarked_on(run: Run, home: Path, file: Path) -> None:
    """It may be meant; whoever did not mean it reads it here."""
    (home / "w").mkdir()
    (home / "f").write_text("")
    _write(
        file,
        '[agents.a]\nworkspace = "~/w"\n[agents.b]\nworkspace = "~/w"\n[agents.c]\nworkspace = "~/f"\nextra_paths = ["~/w"]\n',
    )
    code, _, err = run("config", "check")
    assert code == 0
    assert err.splitlines() == [
        "The workspace of c is no directory: ~/f",
        "a and b search the same notes: ~/w",
        "c searches notes of a too: ~/w",
        "c searches notes of b too: ~/w",
    ]


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_file_that_is_named_is_looked_at_in_place_of_the_one_in_force(
    run: Run, home: Path, file: Path, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to where one is, or below ~; every fault is told at once."""
    _write(file, "nonsense")
    _write(home / "new/a.toml", '[agents.ann]\nworkspace = "."\n')
    _write(home / "new/b.toml", "[agents.main]\nprovder = 1\nmax_file_mb = -1\nworkspace = 3\nworkspac = 4\n")
    monkeypatch.chdir(home / "new")
    for name in ("a.toml", "~/new/a.toml", str(home / "new/a.toml")):
        code, out, _ = run("config", action, name)
        assert code == 0
        assert "~/new/a.toml" in out
    code, _, err = run("config", action, "b.toml")
    assert code == 78
    assert [line.split("toml:")[1].split()[0] for line in err.splitlines()] == ["2:", "3:", "4:", "5:"]
    assert "did you mean provider?" in err
    assert run("config", action, "none.toml").code == 78
    assert run("config", action).code == 78


_WITH_KEY = """
[agents.main]
workspace = "~"
provider = "openai"
[agents.main.remote]
api_key = "sk-mellon"
headers = { x-team = "speak" }
"""


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_a_key_is_not_shown(run: Run, file: Path, flag: list[str]) -> None:
    """Nor is what a header says; that they are set is."""
    _write(file, _WITH_KEY)
    code, out, err = run("config", "show", *flag)
    assert (code, err) == (0, "")
    assert "mellon" not in out
    assert "speak" not in out
    assert out.count("********") == 2


@pytest.mark.parametrize(("mode", "remarked"), [(0o600, False), (0o644, True)])
def test_a_key_that_others_may_read_is_remarked(run: Run, file: Path, mode: int, *, remarked: bool) -> None:
    """With the command that mends it, and without the key."""
    _write(file, _WITH_KEY)
    file.chmod(mode)
    code, out, err = run("config", "check")
    assert code == 0
    assert ("others may read it (mode 0644): chmod 600 ~/.config/memd/config.toml" in err) is remarked
    assert "mellon" not in out + err


def test_who_gets_the_notes_is_remarked(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody named them, and a key in the environment is enough."""
    monkeypatch.setenv("VOYAGE_API_KEY", "pa-mellon")
    _write(file, '[agents.main]\nworkspace = "~"\n')
    err = run("config", "check").err
    assert "main: with the environment of this shell, auto takes voyage" in err
    assert "sent to api.voyageai.com" in err
    assert 'provider = "local" keeps them here' in err
    assert "mellon" not in err
    _write(file, '[agents.main]\nworkspace = "~"\nprovider = "local"\n')
    assert run("config", "check").err == ""


@pytest.mark.parametrize(
    ("settings", "remark"),
    [
        ('provider = "openai"', "main: search is by keywords alone. openai: OPENAI_API_KEY is not set"),
        (
            'provider = "openai"\nfallback = "local"',
            "main: its fallback local serves. openai: OPENAI_API_KEY is not set",
        ),
        (
            'provider = "local"\nfallback = "voyage"',
            "main: it has no fallback. voyage: VOYAGE_API_KEY is not set",
        ),
        ('provider = "ollama"', ""),
        ('provider = "none"', ""),
    ],
)
def test_a_provider_that_cannot_be_had_is_remarked(run: Run, file: Path, settings: str, remark: str) -> None:
    """It is no fault of the file, and yet perhaps not meant."""
    _write(file, f'[agents.main]\nworkspace = "~"\n{settings}\n')
    code, _, err = run("config", "check")
    assert code == 0
    assert remark in err
    assert bool(err) is bool(remark)


@pytest.mark.parametrize(
    ("chunking", "remark"),
    [
        (
            "tokens = 800",
            "chunking.tokens = 800 changes nothing: a chunk has at most chunking.max_chars (700) characters",
        ),
        ("tokens = 300", "chunking.tokens = 300 changes nothing but how Chinese is cut: a chunk has at most"),
        (
            "tokens = 800, max_chars = 400",
            "which are 100 tokens of English and 400 of Chinese. max_chars = 3200 has it count.",
        ),
        ("tokens = 8192", "max_chars = 32768 has it count."),
        ("tokens = 8192, max_chars = 32768", None),  # the most of both
        ("tokens = 800, max_chars = 3200", None),
        ("tokens = 175", None),
        ("tokens = 400", None),
        ("max_chars = 300", None),
    ],
)
def test_a_limit_of_chunks_that_is_never_met_is_remarked(
    run: Run, file: Path, chunking: str, remark: str | None
) -> None:
    """A chunk ends at the nearer one of the two."""
    _write(file, f'[agents.main]\nworkspace = "~"\nprovider = "none"\nchunking = {{ {chunking} }}\n')
    code, _, err = run("config", "check")
    assert code == 0
    assert bool(err) is bool(remark)
    assert (remark or "") in err


def test_a_link_to_nowhere_is_told_as_such(run: Run, home: Path) -> None:
    """By every command in the same words: it is neither missing nor there."""
    link = home / "my.toml"
    link.symlink_to(home / "dotfiles" / "memd.toml")
    for words in (("check",), ("init", "--no-memory", "--no-sessions"), ("init", "--force")):
        ran = run("config", *words, "--config", str(link))
        assert ran.code != 0
        assert "is a link to" in ran.err
        assert "which does not exist" in ran.err


def test_the_configuration_of_openclaw_is_imported(run: Run, home: Path, file: Path) -> None:
    """Shown first; what is there is left alone; JSON5 and included files are read; no key is in what comes out."""
    code, _, err = run("config", "import", "--from", "openclaw")
    assert (code, "There is no ~/.openclaw/openclaw.json" in err) == (3, True)
    theirs = home / ".openclaw" / "openclaw.json"
    theirs.parent.mkdir()
    theirs.write_text(
        "{ // mine\n $include: './a.json5', memory: {search: {provider: 'openai', remote: {apiKey: 'sk-hush'}}}, }"
    )
    (theirs.parent / "a.json5").write_text(
        "{agents: {list: [{id: 'work', workspace: '~/w'}]}, memory: {search: {provider: 'local'}}}"
    )
    code, out, err = run("config", "import", "--from", "openclaw", "--print")
    assert (code, file.exists()) == (0, False)
    assert tomllib.loads(out)["agents"] == {"work": {"workspace": str(home / "w"), "provider": "openai"}}
    assert "memory.search.remote.apiKey in" in err
    assert "hush" not in out + err
    code, out, _ = run("config", "import", "--from", "openclaw")
    assert (code, out) == (
        0,
        "Wrote ~/.config/memd/config.toml: 1 agent (work), as ~/.openclaw/openclaw.json has them.\n",
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("config", "check").code == 0
    _write(file, "# mine\n")
    code, _, err = run("config", "import", "--from", "openclaw")
    assert (code, "left alone" in err, file.read_text()) == (1, True, "# mine\n")
    assert (
        json.loads(run("config", "import", "--from", "openclaw", "--force", "--json").out)["data"]["written"]
        is True
    )
    assert "sk-" not in file.read_text()


@pytest.mark.parametrize("text", ["{", "{$include: './openclaw.json'}", "{$include: './nowhere.json'}"])
def test_a_configuration_of_openclaw_that_cannot_be_read_is_told(
    run: Run, home: Path, file: Path, text: str
) -> None:
    """Also one that includes itself."""
    theirs = home / ".openclaw" / "openclaw.json"
    theirs.parent.mkdir()
    theirs.write_text(text)
    code, _, err = run("config", "import", "--from", "openclaw")
    assert (code, "cannot be read" in err or "not there" in err, file.exists()) == (1, True, False)
