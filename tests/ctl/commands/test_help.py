"""memd-ctl help."""

import argparse
import io
import json
import re
from pathlib import Path

import pytest

from memd.ctl.arguments import COMMANDS
from memd.ctl.commands.help import read_pages, run_help
from memd.ctl.invocation import Invocation, Places
from memd.ctl.output.terminal import Screen
from tests.bounds import shipped
from tests.ctl.conftest import Run


def test_all_topics_are_listed_with_their_titles(run: Run) -> None:
    """In text and as JSON; neither asks a daemon."""
    code, out, err = run("help")
    assert (code, err) == (0, "")
    assert re.search(r"^  providers +Embedding providers", out, re.MULTILINE)
    topics = json.loads(run("help", "--json").out)["data"]["topics"]
    assert [topic["topic"] for topic in topics] == sorted(read_pages())
    assert all(topic["title"] in out for topic in topics)


@pytest.mark.parametrize("topic", read_pages())
def test_each_page_is_shown_whole(run: Run, topic: str) -> None:
    """As Markdown where stdout is no terminal; links name the command that shows the other page."""
    code, out, err = run("help", topic)
    assert (code, err) == (0, "")
    assert out.startswith("# ")
    assert ".md)" not in out.replace("PROTOCOL.md)", "")
    data = json.loads(run("help", topic, "--json").out)["data"]
    assert (data["topic"], data["text"]) == (topic, out)
    for named in re.findall(r"memd-ctl help ([a-z]+)", out):
        assert named in read_pages()


def test_a_link_becomes_a_command() -> None:
    """With the words of the link, where they are not the name of the page."""
    pages = read_pages()
    assert "the scope rules (`memd-ctl help scope`) exclude" in pages["python"].text.replace("\n", " ")
    assert "see `memd-ctl help redaction`" in pages["transcripts"].text


@pytest.mark.parametrize("typed", ["Providers", "providers.md", " providers "])
def test_a_topic_may_be_typed_in_several_ways(run: Run, typed: str) -> None:
    """In any letter case, and as the name of the file."""
    assert run("help", typed).out == run("help", "providers").out


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("provider", "Did you mean `memd-ctl help providers`? `memd-ctl help` lists all pages."),
        ("secrets", "Did you mean `memd-ctl help redaction`? `memd-ctl help` lists all pages."),
        (
            "config",
            (
                "Did you mean `memd-ctl help configuration`? `memd-ctl config --help` lists the options of that command. "
                "`memd-ctl help` lists all pages."
            ),
        ),
        ("zzzz", "`memd-ctl help` lists all pages."),
        ("../redaction", "Did you mean `memd-ctl help redaction`? `memd-ctl help` lists all pages."),
    ],
)
def test_a_topic_that_does_not_exist_is_refused(run: Run, typed: str, hint: str) -> None:
    """With the pages of similar names, and the command of that name."""
    code, out, err = run("help", typed)
    assert (code, out) == (3, "")
    assert err == f"memd-ctl: There is no help page {typed!r}.\n{hint}\n"


def test_every_command_is_on_the_page_of_commands() -> None:
    """Who reads about memd finds all it can do."""
    page = read_pages()["commands"].text
    assert [command for command in COMMANDS if f"| `memd-ctl {command}" not in page] == []


_STYLE = re.compile(r"\x1b\[[\d;]*m")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _laid_out(topic: str, environ: dict[str, str], *, wants_color: bool = False) -> str:
    """Return a page as a terminal shows it."""
    out = _Terminal()
    screen = Screen(out, io.StringIO(), {"TERM": "xterm"} | environ, wants_color=wants_color, json=False)
    nowhere = Path("/nonexistent")
    places = Places(home=nowhere, config=None, state=nowhere, socket=nowhere)
    screen.finish(run_help(Invocation(argparse.Namespace(topic=topic), places, screen, {})))
    return out.getvalue()


@pytest.mark.parametrize(("wants_color", "environ"), [(True, {}), (False, {}), (True, {"NO_COLOR": "1"})])
def test_on_a_terminal_a_page_is_laid_out(wants_color: bool, environ: dict[str, str]) -> None:
    """Without the signs of Markdown, within 80 columns, and in colours only where they are wanted."""
    shown = _laid_out("connect", environ, wants_color=wants_color)
    assert ("\x1b[33m" in shown or "\x1b[36m" in shown) == (wants_color and not environ)
    text = _STYLE.sub("", shown)
    assert "memd-ctl mcp install --client claude" in text
    assert "```" not in text
    assert "## " not in text
    assert max(map(len, text.splitlines())) <= 80


def test_on_a_wide_terminal_lines_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer ones are hard to read."""
    widest = shipped("memd.ctl.commands.help._WIDEST")
    monkeypatch.setattr(Screen, "columns", 3 * widest)
    shown = _STYLE.sub("", _laid_out("connect", {}))
    assert 0.9 * widest < max(map(len, shown.splitlines())) <= widest
