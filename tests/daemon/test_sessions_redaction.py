"""What is secret stays out of the index, and goes from one that was made by other rules."""

import signal
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memd_client import AsyncClient, Client
from tests.daemon.chats import NEVER, begun, configured, holding, name_of, settings, status
from tests.daemon.fresh import becomes_fresh, index_of
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider
from tests.wait import until, until_awaited

TIMEOUT_S = 30.0
SECRET = "hunter2secretX9"  # said in the transcript
NOTED = "mellon4friendsY8"  # written in the note
BADGE = "BADGE77431"


def holding_bytes(state: Path, text: str) -> list[str]:
    """The files of a state directory in which a text stands, in whatever case."""
    wanted = text.lower().encode()
    return sorted(
        file.name for file in state.rglob("*") if file.is_file() and wanted in file.read_bytes().lower()
    )


def reloaded(daemon: Daemon, client: Client, more: str) -> None:
    """Have the daemon run with other settings, and wait until its index is built for them."""
    files = status(client).files
    daemon.configure(settings(daemon.home, NEVER, more))
    before = daemon.printed().count("config.reloaded")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.printed().count("config.reloaded") > before, TIMEOUT_S)
    until(lambda: status(client).rebuild is None and status(client).files == files, TIMEOUT_S)


@pytest.fixture
def talked(daemon: Daemon) -> Daemon:
    """A daemon that indexes a transcript and a note as they are, with a secret and a badge in each."""
    begun(daemon.home, *(f"the password is {SECRET}, says {BADGE} of walrus {n}" for n in range(30)))
    daemon.write("memory/a.md", f"# Door\n\nThe password is {NOTED}, the badge {BADGE}.\n\nA lighthouse.\n")
    configured(daemon, NEVER, 'redact = { mode = "off" }').start()
    with daemon.client() as client:
        client.sync()
        assert len(holding(client, SECRET)) > 1
    return daemon


def test_other_rules_redact_what_is_indexed(talked: Daemon) -> None:
    """Transcripts, then what the user calls a secret, then notes: each time nothing is left of it in any file."""
    with talked.client() as client:
        reloaded(talked, client, "")
        assert not holding(client, SECRET)
        assert holding(client, NOTED)
        assert "[REDACTED:password]" in str(client.search("walrus").results)
        assert status(client).redacted["password"] == 30
        extra = f'redact = {{ extra = [{{ name = "badge", pattern = "{BADGE[:5]}[0-9]+" }}] }}'
        reloaded(talked, client, extra)
        assert {hit.source for hit in holding(client, BADGE)} == {"memory"}
        assert status(client).redacted["badge"] == 30
        reloaded(talked, client, extra.replace("extra", 'mode = "all", extra', 1))
        assert status(client).redacted["badge"] == 31
        for secret in (SECRET, NOTED, BADGE):
            assert not holding(client, secret)
            until(lambda secret=secret: not holding_bytes(talked.state, secret), TIMEOUT_S)  # type: ignore[misc]
        note = client.get("memory/a.md")
        assert note.text.splitlines() == [
            "# Door",
            "",
            "The password is [REDACTED:password], the badge [REDACTED:badge].",
            "",
            "A lighthouse.",
        ]
        assert SECRET not in talked.printed()
        becomes_fresh(
            talked, client, settings(talked.home, NEVER, extra.replace("extra", 'mode = "all", extra', 1))
        )


def test_what_an_earlier_version_of_the_rules_left_is_taken_out(talked: Daemon) -> None:
    """An index that says it was made by other rules is made anew at the start; it equals a fresh one."""
    talked.stop()
    with closing(apsw.Connection(str(index_of(talked)))) as index:
        index.execute(
            "UPDATE meta SET value = replace(value, 'redacted: nothing', 'redacted: 0:0') WHERE key = 'fingerprint'"
        )
        assert index.changes() == 1
        assert "redacted: 0:0" in index.execute("SELECT value FROM meta WHERE key = 'fingerprint'").get
    assert holding_bytes(talked.state, SECRET)
    configured(talked)
    with talked.start().client() as client:
        until(lambda: status(client).rebuild is None and status(client).redacted, TIMEOUT_S)
        until(lambda: not holding_bytes(talked.state, SECRET), TIMEOUT_S)
        assert holding_bytes(talked.state, NOTED)
        becomes_fresh(talked, client, settings(talked.home))


def test_what_is_cached_of_a_text_is_no_text(daemon: Daemon) -> None:
    """Vectors are kept by the hash of what is embedded, which was redacted before."""
    session = begun(daemon.home, f"the password is {SECRET}, says the walrus")
    daemon.configure(settings(daemon.home, provider="auto"))
    with daemon.start().client() as client:
        assert client.sync().vectors == "complete"
        assert [hit.path for hit in client.search("walrus").results] == [name_of(session)]
        assert client.search("what is the password?").results
        assert status(client).vectors.done == 1
        assert not holding_bytes(daemon.state, SECRET)
        kept = (daemon.state / "embeddings.sqlite").read_bytes()
        assert b"walrus" not in kept


async def test_better_rules_embed_what_changed_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is redacted anew at the next start; vectors of texts that it leaves alone are kept."""
    provider = HashingProvider()
    for number in range(20):
        write(home, f"memory/{number:02}.md", f"# Note {number}\n\nword{number} stands here\n")
    write(home, "memory/a.md", "# Door\n\nwalrus, and then BADGE77431\n")
    older = 'redact = { mode = "all" }'
    async with running(home, provider, settings=older) as client:
        assert (await client.sync()).vectors == "complete"
        assert sum(map(len, provider.requests)) == 21
    better = 'redact = { mode = "all", extra = [{ name = "badge", pattern = "BADGE[0-9]+" }] }'
    for wanted, embedded in ((better, 22), (better, 22)):
        monkeypatch.setattr("memd.redact.rule.VERSION", embedded * 100 + len(provider.requests))
        async with running(home, provider, settings=wanted) as client:

            async def is_built(client: AsyncClient = client) -> bool:
                status = (await client.status()).agents["main"]
                return status.rebuild is None and status.files == 21

            await until_awaited(is_built, TIMEOUT_S)
            assert (await client.sync()).vectors == "complete"
            assert sum(map(len, provider.requests)) == embedded
            [hit] = (await client.search("walrus")).results[:1]
            assert "[REDACTED:badge]" in hit.snippet
