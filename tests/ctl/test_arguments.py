"""What can be typed."""

from argparse import ArgumentParser

import pytest

from memd.ctl import arguments
from memd.ctl.arguments import COMMANDS
from memd.ctl.failures import UsageError
from memd.ctl.program import find_command
from tests.bounds import shipped
from tests.ctl.conftest import Run
from tests.table import table


@table("command", COMMANDS)
def test_every_command_has_a_module(command: str) -> None:
    """The name is that of the module that runs it."""
    assert callable(find_command(command))


@pytest.mark.parametrize(
    "argv",
    [
        ["--json", "--agent", "a", "--socket", "s", "--timeout", "3", "search", "q"],
        ["search", "q", "--json", "--agent", "a", "--socket", "s", "--timeout", "3"],
        ["--json", "--agent=a", "search", "--socket", "s", "q", "--timeout=3"],
        [
            "--agent",
            "b",
            "--socket",
            "t",
            "search",
            "q",
            "--agent",
            "a",
            "--socket",
            "s",
            "--json",
            "--timeout",
            "3",
        ],
    ],
)
def test_options_stand_before_the_command_or_after_it(argv: list[str]) -> None:
    """The later one counts where both are given."""
    options = arguments.parse(argv)
    assert (options.json, options.agent, options.socket, options.timeout) == (True, "a", "s", 3.0)


def test_an_option_that_is_not_given_has_its_default() -> None:
    """Whatever the command."""
    options = arguments.parse(["config", "init"])
    assert (options.json, options.agent, options.timeout, options.no_color, options.force) == (
        False,
        None,
        None,
        False,
        False,
    )


@table(
    "argv",
    [
        [],
        ["serach", "x"],
        ["search"],
        ["search", "x", "--max-results", "0"],
        ["search", "x", "-n", "51"],
        ["search", "x", "-n", "9" * 5000],
        ["search", "x", "-n", "٣"],
        ["search", "x", "--min-score", "1.5"],
        ["search", "x", "--min-score", "nan"],
        ["search", "x", "--source", "web"],
        ["search", "x", "--timeout", "0"],
        ["search", "x", "--timeout", "inf"],
        ["search", "x", "--timeout", "soon"],
        ["search", "x", "--socket", ""],
        ["search", "x", "--socket", "a\0b"],
        ["search", "x", "--js"],
        ["search", "x", "--session-key", ""],
        ["get", "x", "--session-key", ""],
        ["hook", "user-prompt", "--session-key", ""],
        ["hook", "install", "--client", "claude", "--session-key="],
        ["mcp", "install", "--client", "claude", "--session-key", ""],
        ["get"],
        ["get", "a.md", "--from", "0"],
        ["get", "a.md", "--lines", "-3"],
        ["logs", "-n", "1.5"],
        ["config"],
        ["config", "mend"],
        ["up", "a", "b"],
        ["up", ""],
        ["down", "--agent", "main"],
        ["demo", "--agent", "main"],
    ],
)
def test_what_makes_no_sense_is_refused(argv: list[str]) -> None:
    """With a sentence, and before anything happens."""
    with pytest.raises(UsageError) as refused:
        arguments.parse(argv)
    assert refused.value.exit_code == 2
    assert str(refused.value)


def test_a_long_turn_is_read_to_its_end() -> None:
    """Where it is read on is a number far above the lines of a file."""
    assert arguments.parse(["get", "a.jsonl", "--from", "700000000004"]).start_line == 700_000_000_004


def test_a_mistake_is_told_on_stderr(run: Run) -> None:
    """With the status that shells know for it, and where to read more."""
    code, out, err = run("get", "a.md", "--from", "0")
    assert (code, out) == (2, "")
    assert err == (
        "memd-ctl: argument --from: 0 is not a whole number from 1 to 9007199254740992.\nSee `memd-ctl get --help`.\n"
    )


def test_an_option_that_a_command_has_not_hints_at_the_help_of_that_command(run: Run) -> None:
    """Which lists those that it has."""
    code, out, err = run("tags", "--mode", "vector")
    assert (code, out) == (2, "")
    assert err == "memd-ctl: unrecognized arguments: --mode vector.\nSee `memd-ctl tags --help`.\n"


def test_a_mistake_is_told_as_json_too(run: Run) -> None:
    """Where the line asks for JSON, although it could not be read."""
    code, out, err = run("serach", "x", "--json")
    assert (code, err) == (2, "")
    assert out.startswith('{"ok":false,"error":{"type":"usage","message":"argument COMMAND: invalid choice')


@table(
    ("argv", "is_hook"),
    [
        (["hook", "user-prompt"], True),
        (["--json", "--agent", "hook", "hook", "session-start"], True),
        (["--socket=/run/s", "hook", "no-such-event"], True),
        (["hook"], True),
        (["hook", "install", "--client", "claude"], False),
        (["hook", "uninstall"], False),
        (["hook", "--json", "install", "--client", "claude"], False),
        (["hook", "--socket", "install", "uninstall", "--client", "claude"], False),
        (["hook", "--agent=a", "install"], False),
        (["hook", "--agent", "install", "session-start"], True),
        (["hook", "--session-key", "x", "user-prompt"], True),
        (["search", "hook", "user-prompt"], False),
        (["--agent", "hook", "search", "x"], False),
        (["--agent"], False),
        ([], False),
    ],
)
def test_a_hook_is_known_by_its_command_line(argv: list[str], is_hook: bool) -> None:
    """Also one that makes no sense: its exit status must still be 0."""
    assert arguments.is_hook(argv) == is_hook


def test_a_timeout_and_a_number_of_results_go_to_their_ends() -> None:
    """One more is refused."""
    longest, most = (
        shipped("memd.ctl.argument_types._LONGEST_TIMEOUT_S"),
        shipped("memd.ctl.argument_types._MAX_RESULTS"),
    )
    argv = ["search", "x", "--timeout", str(longest), "--max-results", str(most)]
    assert arguments.parse(argv).timeout == longest
    for wrong in (["--timeout", str(longest + 1)], ["--max-results", str(most + 1)]):
        with pytest.raises(UsageError):
            arguments.parse(["search", "x", *wrong])


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        *((command, [command]) for command in COMMANDS),
        *((command, [command, "--no-such-option", "x"]) for command in COMMANDS),
        ("search", ["--agent", "sync", "search", "q", "--strict", "-n", "3"]),
        ("explain", ["explain", "q", "--all"]),
        ("status", ["status", "-w"]),
        ("web", ["web", "--editor", "zed", "--no-browser"]),
        ("openclaw", ["openclaw", "install", "--write"]),
        ("hook", ["hook", "install", "--client", "claude"]),
        ("service", ["service", "nonsense"]),
        ("help", ["help", "search"]),
    ],
)
def test_the_parser_of_one_command_reads_what_that_of_all_reads(command: str, argv: list[str]) -> None:
    """The same options, or the same complaint."""

    def read(parser: ArgumentParser) -> object:
        try:
            return parser.parse_args(argv)
        except UsageError as error:
            return str(error), error.hint

    assert read(arguments.make_parser(command=command)) == read(arguments.make_parser())


@pytest.mark.parametrize("argv", [["--help"], ["-h", "search"], ["search", "--help"], ["nonsense"], []])
def test_what_tells_of_all_commands_knows_them_all(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A help page, and the complaint about a command that there is not."""
    said = ""
    try:
        arguments.parse(argv)
    except UsageError as error:
        said = str(error)
    except SystemExit:
        said = capsys.readouterr().out
    knows_all = all(command in said for command in COMMANDS)
    assert knows_all == (argv[:1] != ["search"] and bool(argv))
