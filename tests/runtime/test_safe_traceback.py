"""What is told of a failure, and that nothing of what was worked on is in it."""

import asyncio
import codecs
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import httpx
import msgspec
import pytest

from memd.errors import MemdError
from memd.runtime import safe_traceback
from memd.store.errors import StoreRefused, mapped_errors
from memd_client.errors import TimedOut
from tests.bounds import shipped

SECRET = "porcupine"  # stands in for memory; never a constant of the functions that fail


def _text() -> str:
    return f"the vault opens with {SECRET}"


def _sql(statement: str, *values: str) -> None:
    apsw.Connection(":memory:").execute(statement, values)


def _nested() -> None:
    try:
        msgspec.json.decode(f'"{_text()}"', type=int)
    except msgspec.ValidationError:
        raise KeyError(_text()) from ValueError(_text())


def _grouped() -> None:
    inner = ExceptionGroup(_text(), [LookupError(_text()), OSError(_text())])
    raise ExceptionGroup(_text(), [inner, ZeroDivisionError(_text())])


def _noted() -> None:
    failure = RuntimeError(_text())
    failure.add_note(_text())
    raise failure


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    kind: int = 0


QUOTING: list[Callable[[], Any]] = [
    lambda: codecs.decode(_text().encode() + b"\xff", "utf-8"),
    (_text() + "\udcff").encode,
    lambda: json.loads(_text()),
    lambda: int(_text()),
    lambda: dict[str, str]()[_text()],
    lambda: getattr(object(), _text()),
    lambda: msgspec.json.decode(json.dumps({_text(): 1}), type=_Strict),
    lambda: msgspec.convert({"kind": _text()}, dict[str, int]),
    lambda: _sql(f"SELECT '{_text()}"),
    lambda: _sql(f"SELECT {SECRET}"),
    lambda: httpx.URL(f"http://x:{_text()}"),
    lambda: subprocess.run([sys.executable, "-c", "raise SystemExit(3)", _text()], check=True),
    lambda: compile(f"{_text()} =", "text", "exec"),
    lambda: asyncio.run(asyncio.wait_for(asyncio.sleep(1, _text()), 0)),
    lambda: (_ for _ in ()).throw(StopIteration(_text())),
    _nested,
    _grouped,
    _noted,
]


@pytest.mark.parametrize("fail", QUOTING, ids=range(len(QUOTING)))
def test_no_failure_quotes_what_it_failed_at(fail: Callable[[], Any]) -> None:
    """Whatever library complains of a text: type and place are told, the text is not."""
    with pytest.raises(Exception) as failed:
        fail()
    told = safe_traceback.format_safely(failed.value)
    assert SECRET not in told
    assert type(failed.value).__name__ in told
    assert "test_safe_traceback.py" in told
    assert SECRET not in safe_traceback.cause(failed.value)


def _missing(path: Path) -> None:
    path.read_bytes()


def _literal() -> None:
    raise RuntimeError("the loop is closed")


def _attribute() -> None:
    len(object().no_such_name)  # type: ignore[attr-defined]


def _key() -> None:
    dict[str, str]()["no such key"]


def _ours() -> None:
    raise MemdError("config.toml: no such agent")


def _of_client() -> None:
    raise TimedOut(3)


@pytest.mark.parametrize(
    ("fail", "told"),
    [
        (_literal, "RuntimeError: the loop is closed"),
        (_attribute, "AttributeError: 'object' object has no attribute 'no_such_name'"),
        (_key, "KeyError: 'no such key'"),
        (_ours, "memd.errors.MemdError: config.toml: no such agent"),
        (_of_client, "memd_client.errors.TimedOut: memd did not answer within 3 s"),
        (
            lambda: _missing(Path("/nowhere/x")),
            "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/x'",
        ),
        (lambda: __import__("no_such_module"), "ModuleNotFoundError: no module named 'no_such_module'"),
        (lambda: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_holds_no_data_is_told(fail: Callable[[], Any], told: str) -> None:
    """Words that stand in the source, system errors, and memd's own messages help whoever mends it."""
    with pytest.raises(Exception) as failed:
        fail()
    assert safe_traceback.cause(failed.value).startswith(told)
    assert safe_traceback.format_safely(failed.value).splitlines()[-1].startswith(told)


def test_how_one_led_to_another_is_told() -> None:
    """In the order in which they happened, each with its frames."""
    with pytest.raises(KeyError) as failed:
        _nested()
    told = safe_traceback.format_safely(failed.value)
    assert told.index("ValueError") < told.index("direct cause") < told.index("KeyError")
    assert "in _nested" in told


def test_a_chain_without_end_is_cut() -> None:
    """A failure that is its own cause, by way of another, is told once."""
    one, other = ValueError(), TypeError()
    one.__cause__, other.__cause__ = other, one
    assert safe_traceback.format_safely(one).count("ValueError") == 1


@pytest.mark.parametrize("question", ['"', "x:y", "a NEAR(", "-", "*", "^", "(porcupine"])
def test_no_question_is_quoted_by_a_store(question: str, tmp_path: Path) -> None:
    """SQLite tells what it did not understand in the words that it was asked with; a store does not repeat them."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    with pytest.raises(StoreRefused) as failed, mapped_errors(tmp_path / "main.sqlite"):
        connection.execute("SELECT * FROM t WHERE t MATCH ?", (f"{question} {SECRET}:{SECRET}",))
    assert str(failed.value) == f"{tmp_path}/main.sqlite: SQLite does not take a statement"
    assert SECRET not in safe_traceback.format_safely(failed.value)


STRAYS = """
import sys, threading
from memd.runtime import safe_traceback as postmortem
postmortem.handle_uncaught(postmortem.print_traceback)
secret = "".join(("porc", "upine"))
class Late:
    def __repr__(self): return secret
    def __del__(self): raise ValueError(secret)
Late()
thread = threading.Thread(target=lambda: int(secret), name=secret)
thread.start(); thread.join()
raise KeyError(secret)
"""


def test_python_itself_prints_nothing_that_failed() -> None:
    """What ends the process, a thread or an object goes to stderr by way of an account."""
    done = subprocess.run(
        [sys.executable, "-c", STRAYS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert SECRET not in done.stderr + done.stdout
    for place in ("main", "thread", "object"):
        assert f"memd: failed in {place}\n" in done.stderr
    assert "KeyError: <9 characters>" in done.stderr


def test_of_a_long_chain_the_last_links_are_told() -> None:
    """And of a group the first members."""
    longest = shipped("memd.runtime.safe_traceback._LONGEST_CHAIN")
    failure: Exception | None = None
    for number in range(longest + 1):
        cause, failure = failure, MemdError(f"link {number}")
        failure.__cause__ = cause
    assert failure is not None
    told = safe_traceback.format_safely(failure)
    assert told.count("MemdError: link") == longest
    assert "link 0" not in told
    most = shipped("memd.runtime.safe_traceback._MOST")
    told = safe_traceback.format_safely(
        ExceptionGroup("all", [MemdError(f"member {n}") for n in range(most + 1)])
    )
    assert told.count("MemdError: member") == most
    deepest = shipped("memd.runtime.safe_traceback._DEEPEST")
    group: Exception = MemdError("innermost")
    for _ in range(deepest):
        group = ExceptionGroup("around", [group])
    assert "innermost" in safe_traceback.format_safely(group)
    assert "innermost" not in safe_traceback.format_safely(ExceptionGroup("around", [group]))


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (MemdError("the disk is full"), "the disk is full"),
        (MemoryError(), "no memory is left"),
        (KeyError(SECRET), "memd failed in an unexpected way (KeyError); its log says where"),
    ],
)
def test_a_person_is_told_in_words_of_memd(failure: Exception, words: str) -> None:
    """Those of others may quote what they were given."""
    assert safe_traceback.safe_message(failure) == words
