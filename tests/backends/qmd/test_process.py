import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from memd.backends.qmd.process import MAX_OUTPUT, ProcessEnded, QmdFailed, QmdTimedOut, last_words, plain, run
from tests.backends.qmd.bench import lives
from tests.bounds import shipped
from tests.wait import until, until_async


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n", "two"),
        ("Error: no such model\nHint: run doctor\n", "Error: no such model"),
        (
            "file:///x/store.js:46\n  throw new Error('x')\n  ^\n\nError: it broke\n    at run (file:///x)\n\nNode.js v22.1.0\n",
            "Error: it broke",
        ),
        ("\x1b[31mfailed\x1b[0m \x1b[?25lhere\r\n", "failed here"),
        ("\x1b]0;title\x07a\x00b\u202ec error", "a b c error"),
        ("error " + "x" * 900, "error " + "x" * 194),
    ],
)
def test_the_line_that_tells_what_went_wrong_is_repeated(said: str, words: str) -> None:
    """The last line that speaks of trouble, as plain text of at most 200 characters."""
    assert last_words(said) == words


def test_lines_that_quote_a_question_are_not_repeated() -> None:
    """Programs print what they were asked; memory never enters a message."""
    said = "Error: cannot expand 'Where is the SAFE?'\nsomething else\n"
    assert last_words(said, ("where", "safe")) == "something else"
    assert last_words("Error about safe", ("safe",)) == ""


def test_a_plain_line_is_one_line() -> None:
    """Whatever would move a cursor is gone."""
    assert plain("a\tb\x9b\x7f\u2028c") == "a b c"


def test_what_is_repeated_has_an_end() -> None:
    """One line, and so much of it."""
    most = shipped("memd.backends.qmd.process._MOST_CHARS")
    for count in (most - 6, most - 5):
        assert last_words("Error " + "x" * count) == "Error " + "x" * (most - 6)


def test_a_line_that_many_others_follow_is_not_looked_for() -> None:
    """The last ones are read."""
    most = shipped("memd.backends.qmd.process._MOST_LINES")
    for others, told in ((most - 1, "Error: x"), (most, "ok")):
        assert last_words("\n".join(["Error: x", *["ok"] * others])) == told


FOREVER_S = 60.0
# A family whose members ignore what can be ignored, and hold on to stdout; each writes its pid into a file.
FAMILY = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork(); os.fork()
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
time.sleep(600)
"""


async def python(code: str, *arguments: str, timeout_s: float = FOREVER_S, **how: Any) -> ProcessEnded:
    return await run(
        (sys.executable, "-ISc", code, *arguments),
        what="qmd search",
        environ={"A": "1"},
        timeout_s=timeout_s,
        **how,
    )


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


async def test_what_a_program_says_and_how_it_ends_is_told() -> None:
    """Its status, its output, and the end of its errors."""
    ended = await python("import sys; print('out'); sys.stderr.write('x' * 100_000 + 'end'); sys.exit(3)")
    assert (ended.status, ended.stdout) == (3, "out\n")
    assert ended.stderr.endswith("xend")
    assert len(ended.stderr) <= 40_000


async def test_a_program_stands_alone() -> None:
    """Its environment is what it is given, its stdin is empty, its group its own, and no project's directory its own."""
    code = "import os, sys; print(sorted({*os.environ} - {'LC_CTYPE'}), sys.stdin.read(), os.getpgrp() == os.getpid(), os.getcwd())"
    assert (await python(code)).stdout == "['A']  True /\n"


async def test_text_that_is_not_utf8_is_read() -> None:
    """What cannot be decoded is replaced."""
    ended = await python("import sys; sys.stdout.buffer.write(b'a\\xff\\xe4\\xb8')")
    assert ended.stdout.startswith("a\ufffd")


async def test_too_much_output_is_the_end() -> None:
    """A program that never stops talking is killed long before it fills the memory."""
    with pytest.raises(QmdFailed, match="qmd search produced too much output, over 200,000 bytes"):
        await python("while True: print('x' * 1000)")
    exactly = await python(f"print('x' * {MAX_OUTPUT - 1})")
    assert len(exactly.stdout) == MAX_OUTPUT


async def test_output_that_does_not_matter_may_be_long() -> None:
    """Only its end is kept."""
    ended = await python("for n in range(50_000): print(n)", max_output=None)
    assert ended.status == 0
    assert ended.stdout.endswith("49999\n")
    kept = shipped("memd.backends.qmd.process._KEPT_ERRORS")
    assert kept <= len(ended.stdout) <= 2 * kept


async def test_a_program_that_does_not_start_is_a_failure() -> None:
    """Whatever the reason."""
    for program in ("/nowhere/qmd", "/", "a\0b"):
        with pytest.raises(QmdFailed, match="qmd search could not be started"):
            await run((program,), what="qmd search", environ={}, timeout_s=1)
    with pytest.raises(QmdFailed, match="could not be started"):
        await run(("/bin/true", "x" * 5_000_000), what="qmd search", environ={}, timeout_s=1)


async def timed_out(book: Path) -> None:
    """A whole family is given some time."""
    with pytest.raises(QmdTimedOut, match="qmd search did not end within 2 s, and was killed"):
        await python(FAMILY, str(book), timeout_s=2.0)


async def given_up(book: Path) -> None:
    """A whole family runs for somebody who goes away."""
    waiting = asyncio.create_task(python(FAMILY, str(book)))
    await until_async(lambda: len(pids(book)) == 4, 30)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


@pytest.mark.rows(2)
@pytest.mark.parametrize("runs", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("ends", [timed_out, given_up])
def test_nothing_is_left_of_a_program_that_is_killed(
    ends: Callable[[Path], Coroutine[Any, Any, None]], runs: Callable[..., None], tmp_path: Path
) -> None:
    """Neither its children nor theirs, whatever signals they ignore; in either event loop."""
    book = tmp_path / "pids"
    runs(ends(book))
    assert pids(book)
    until(lambda: not any(map(lives, pids(book))), 30)


async def test_nobody_waits_for_who_holds_the_output_of_a_program_that_has_ended(tmp_path: Path) -> None:
    """What was said counts; who was left behind is killed."""
    book = tmp_path / "pids"
    code = (
        "import os, sys, time\n"
        "if os.fork(): print('done', flush=True); sys.exit(0)\n"
        "open(sys.argv[1], 'a').write(str(os.getpid())); time.sleep(600)"
    )
    assert (await python(code, str(book))).stdout == "done\n"
    await until_async(lambda: not any(map(lives, pids(book))), 30)


async def test_who_has_left_the_group_holds_up_nobody() -> None:
    """A program that begins a session of its own and keeps stdout open is not waited for."""
    code = "import os, sys, time\nif os.fork(): print('done', flush=True); sys.exit(0)\nos.setsid(); time.sleep(2)"
    assert (await python(code)).stdout == "done\n"


async def test_no_zombie_is_left() -> None:
    """Every child of ours has been buried when its run is over."""
    with pytest.raises(QmdTimedOut):
        await python("import time; time.sleep(600)", timeout_s=0.3)
    await asyncio.gather(*(python("pass") for _ in range(5)))

    def zombies() -> list[str]:
        mine = f") Z {os.getpid()} "
        stats = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                stats.append(file.read_text())
            except OSError:
                continue
        return [stat for stat in stats if mine in stat]

    await until_async(lambda: not zombies(), 30)


async def test_who_gives_up_while_a_program_starts_leaves_nothing(tmp_path: Path) -> None:
    """A run that is cancelled at any moment of its beginning ends."""
    book = tmp_path / "pids"
    for steps in range(12):
        waiting = asyncio.create_task(python(FAMILY, str(book)))
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    await until_async(lambda: not any(map(lives, pids(book))), 30)


async def test_the_signal_that_ended_a_program_is_told() -> None:
    """As a negative status."""
    code = "import os; os.kill(os.getpid(), 11)"
    assert (await python(code)).status == -signal.SIGSEGV
