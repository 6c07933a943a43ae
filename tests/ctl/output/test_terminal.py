"""Streams, colours and JSON, pages that are drawn again, and progress bars."""

import fcntl
import io
import json
import os
import struct
import termios
import threading

import pytest

from memd.ctl.failures import Failed
from memd.ctl.output.terminal import (
    Outcome,
    Paint,
    Screen,
    Stage,
    ansi,
    choose_paint,
    page_text,
    plain_values,
    show_progress,
    uncoloured,
)
from memd_client.messages import Degraded, ExplainedHit, Found, Hit
from tests.ctl.answers import HIT
from tests.wait import until


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted", "chosen"),
    [
        ({}, True, True, ansi),
        ({"NO_COLOR": ""}, True, True, ansi),  # the convention asks for a value
        ({"NO_COLOR": "1"}, True, True, uncoloured),
        ({"TERM": "dumb"}, True, True, uncoloured),
        ({}, True, False, uncoloured),
        ({}, False, True, uncoloured),
    ],
)
def test_colours_need_a_terminal_that_wants_them(
    environ: dict[str, str], *, terminal: bool, wanted: bool, chosen: Paint
) -> None:
    """A pipe, NO_COLOR, --no-color and a dumb terminal each do without."""
    assert choose_paint(environ, terminal=terminal, wanted=wanted) is chosen


def test_a_look_is_taken_back_at_the_end() -> None:
    """What follows is not painted too; nothing at all is not painted."""
    assert ansi("x", "red") == "\x1b[31mx\x1b[0m"
    assert ansi("", "red") == ""
    assert uncoloured("x", "red") == "x"


def test_the_size_of_a_terminal_is_known() -> None:
    """It may be another one each time; a pipe has none, nor has a terminal that does not tell it."""
    terminal, theirs = os.openpty()
    with os.fdopen(theirs, "w") as out, io.StringIO() as piped:
        screen, pipe = (Screen(one, piped, {}, wants_color=True, json=False) for one in (out, piped))
        assert (screen.columns, screen.rows) == (None, None)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 101, 0, 0))
        assert (screen.columns, screen.rows) == (101, 30)
        assert (pipe.columns, pipe.rows) == (None, None)
    os.close(terminal)


def test_every_field_is_named() -> None:
    """Also those that the socket leaves out because they have their default."""
    hit = Hit(path="a.md", start_line=1, end_line=2, score=0.5, snippet="x")
    assert plain_values(Found(results=[hit], degraded=[Degraded(part="vector", reason="gone")])) == {
        "results": [
            {
                "path": "a.md",
                "start_line": 1,
                "end_line": 2,
                "score": 0.5,
                "snippet": "x",
                "source": "memory",
                "citation": None,
                "own_scale": False,
                "weak": False,
                "date": None,
                "file_date": False,
                "superseded": False,
                "superseded_by": None,
                "copies": [],
                "memory": None,
            }
        ],
        "backend": "builtin",
        "provider": "none",
        "model": "",
        "mode": "hybrid",
        "fallback": False,
        "fallback_from": None,
        "fallback_reason": None,
        "citations": False,
        "scope_denied": False,
        "stale": False,
        "degraded": [{"part": "vector", "reason": "gone"}],
        "max_chars": 0,
        "omitted": 0,
        "filtered": False,
    }


def test_tables_and_tuples_are_plain_too() -> None:
    """JSON knows lists and tables alone."""
    window = ExplainedHit(path="a", start_line=1, end_line=1, score=0, window=(1, 2))
    assert plain_values({"a": (1, None), "b": window})["b"]["window"] == [1, 2]
    assert plain_values({"a": (1, None)}) == {"a": [1, None]}


class _Stream(io.TextIOWrapper):
    """A stream of a process, of any encoding, perhaps a terminal."""

    def __init__(self, encoding: str = "utf-8", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def told(self) -> str:
        data = self.buffer
        assert isinstance(data, io.BytesIO)
        return data.getvalue().decode(self.encoding)


def _screen(out: _Stream, err: _Stream, *, as_json: bool = False) -> Screen:
    return Screen(out, err, {}, wants_color=True, json=as_json)


def test_data_goes_to_stdout_and_remarks_to_stderr() -> None:
    """A pipe gets nothing but data."""
    out, err = _Stream(), _Stream()
    assert _screen(out, err).finish(Outcome([HIT], "hits", ("No hits.",), exit_code=0)) == 0
    assert (out.told, err.told) == ("hits\n", "No hits.\n")


def test_nothing_to_say_is_no_empty_line() -> None:
    """No hits are no output."""
    out, err = _Stream(), _Stream()
    _screen(out, err).finish(Outcome([]))
    assert (out.told, err.told) == ("", "")


def test_json_is_one_document() -> None:
    """What is said on the way, for people, is left out."""
    out, err = _Stream("ascii"), _Stream()
    screen = _screen(out, err, as_json=True)
    screen.say("on the way")
    screen.finish(Outcome({"hits": [HIT], "note": "花生 😀"}, "hits"))
    written = out.buffer
    assert isinstance(written, io.BytesIO)
    data = json.loads(written.getvalue())  # UTF-8, whatever the terminal speaks
    assert data["ok"] is True
    assert data["data"]["note"] == "花生 😀"
    assert data["data"]["hits"][0]["citation"] is None


def test_json_has_an_escape_sequence_for_what_is_not_unicode() -> None:
    """As text has: a path may hold any byte, and no command fails for that."""
    out, err = _Stream(), _Stream()
    screen = _screen(out, err, as_json=True)
    assert screen.finish(Outcome({"/a\udcff": ["/b\udcff"]})) == 0
    assert screen.fail(Failed("not_found", "/c\udcff is not there.", None, exit_code=3)) == 3
    written = out.buffer
    assert isinstance(written, io.BytesIO)
    done, failed = map(json.loads, written.getvalue().splitlines())
    assert done["data"] == {"/a\\udcff": ["/b\\udcff"]}
    assert failed["error"]["message"] == "/c\\udcff is not there."


@pytest.mark.parametrize("hint", [None, "Start it."])
def test_a_failure_is_told_in_the_form_that_was_asked_for(hint: str | None) -> None:
    """For people on stderr, for programs as the one document on stdout."""
    failed = Failed("daemon_not_running", "It does not run.", hint, exit_code=69)
    out, err = _Stream(), _Stream()
    assert _screen(out, err).fail(failed) == 69
    assert (out.told, err.told) == (
        "",
        f"memd-ctl: It does not run.\n{hint}\n" if hint else "memd-ctl: It does not run.\n",
    )
    out, err = _Stream(), _Stream()
    assert _screen(out, err, as_json=True).fail(failed) == 69
    assert json.loads(out.told) == {
        "ok": False,
        "error": {"type": "daemon_not_running", "message": "It does not run.", "hint": hint},
    }
    assert err.told == ""


@pytest.mark.parametrize(("out_is", "err_is"), [(False, True), (True, False)])
def test_each_stream_has_colours_of_its_own(*, out_is: bool, err_is: bool) -> None:
    """Remarks stay coloured when the data goes to a file, and the other way round."""
    out, err = _Stream(terminal=out_is), _Stream(terminal=err_is)
    screen = _screen(out, err)
    screen.finish(Outcome(None, screen.paint("x", "red"), ("y",)))
    assert ("\x1b" in out.told, "\x1b" in err.told) == (out_is, err_is)
    assert (screen.is_terminal, screen.shows_progress, screen.colors_err) == (out_is, err_is, err_is)


def test_what_a_terminal_cannot_show_is_spelled_out() -> None:
    """A note in Chinese on a terminal of another age ends in no traceback."""
    out, err = _Stream("latin-1"), _Stream()
    _screen(out, err).finish(Outcome(None, "café 花"))
    assert out.told == "café \\u82b1\n"


@pytest.mark.parametrize(
    ("text", "rows", "lines"),
    [
        ("a", 3, ["a"]),
        ("a\nb\nc", 3, ["a", "b", "c"]),
        ("a\nb\nc\nd", 3, ["a", "b", "... 2 lines more"]),
        ("a\nb", 1, ["... 2 lines more"]),
    ],
)
def test_a_page_is_no_longer_than_the_terminal(text: str, rows: int, lines: list[str]) -> None:
    """It is drawn from the top over what was there, and what is left of that is cleared."""
    drawn = page_text(text, rows)
    assert drawn.startswith("\x1b[H")
    assert drawn.endswith("\x1b[K\x1b[J")
    assert drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").replace("\x1b[K", "").split("\r\n") == lines


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _terminal_screen(err: io.StringIO) -> Screen:
    return Screen(io.StringIO(), err, {}, wants_color=False, json=False)


def test_off_a_terminal_nothing_is_drawn() -> None:
    """The work is done where it was asked for, and nobody looks."""
    err = io.StringIO()
    where = show_progress(
        _terminal_screen(err), threading.current_thread, lambda: pytest.fail("nobody looks")
    )
    assert where is threading.current_thread()
    assert err.getvalue() == ""


def test_a_bar_shows_how_far_the_work_is() -> None:
    """It is taken away at the end."""
    err = _Terminal()
    looked = threading.Event()

    def work() -> str:
        assert looked.wait(60)
        return "done"

    def look() -> Stage:
        # The bar draws what it was told before.
        if "Reading" in err.getvalue():
            looked.set()
        return Stage("Reading notes", done=3, total=4, remark="3 of 4")

    assert show_progress(_terminal_screen(err), work, look) == "done"
    assert "Reading notes" in err.getvalue()
    assert "3 of 4" in err.getvalue()
    assert err.getvalue().endswith("\x1b[1A\x1b[2K")  # one line up, and that line empty


def test_a_look_that_fails_leaves_the_bar_as_it_was() -> None:
    """The daemon may be too busy to say how far it is."""
    err = _Terminal()
    looks: list[None] = []

    def work() -> None:
        until(lambda: len(looks) >= 2)

    assert show_progress(_terminal_screen(err), work, lambda: looks.append(None)) is None
    assert "Asking memd" in err.getvalue()


def test_what_the_work_raises_comes_out() -> None:
    """Whether a bar was drawn or not."""

    def work() -> None:
        raise ValueError("no")

    for err in (_Terminal(), io.StringIO()):
        with pytest.raises(ValueError, match="no"):
            show_progress(_terminal_screen(err), work, lambda: None)
