"""What goes to which stream, and in which form."""

import io
import json

import pytest

from memd.ctl.failures import Failed
from memd.ctl.output.screen import Outcome, Screen
from tests.ctl.answers import HIT


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
