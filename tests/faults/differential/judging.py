"""What must be true of a daemon's answers after each step, and of its index after a sync."""

import time
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from random import Random

import msgspec

from memd_client import Client
from memd_client.messages import AgentStatus, Found, Hit
from tests.daemon.contents import contents, differences
from tests.faults.differential import daemons
from tests.faults.differential.places import NOISE, Places
from tests.faults.differential.tables import tables, unlike
from tests.faults.differential.truth import TOKEN, Truth
from tests.faults.verdict import Diverged, require_none, unsound
from tests.wait import until

# No search waits for transcripts: their directories may have come a moment ago, and nobody watches them yet.
_HEARD_S = 10.0
# Directories that came back just before a sync are watched a moment after it: until then something might be missed.
_SETTLES_S = 2.0
HEALS_S = 30.0  # a stale answer that is wrong must have become right by then, without anybody's help
_ASKED = 8  # tokens of each kind, after one step
_QUESTIONS = (
    *(
        "lighthouse harbour",
        "the word of the day",
        "数据库迁移",
        "灯塔 港口 メモ",
        "naïve café résumé",
        "a_b.c",
    ),
    *("agreed with Osvaldo that it comes first", "which of the two did we pick", "retry 3 times", "wombat"),
)
# What may be missing for a while, the vectors right after the first start; any other part works all the time.
_MAY_BE_DEGRADED = {"rebuild", "watcher", "vector"}


class Tally(msgspec.Struct):
    """What happened."""

    trials: int = 0
    steps: dict[str, int] = {}  # kind -> how often
    idle: int = 0  # steps that could not be carried out
    asked: int = 0  # searches that were judged
    stale: int = 0  # of these
    wrong_and_stale: int = 0  # of these, those that had to be asked again
    slowest_s: float = 0.0  # until such a one was right
    doubtful: int = 0  # tokens of which nothing is said
    compared: int = 0  # with a fresh daemon
    starts: int = 0  # of the daemon
    kills: int = 0

    def summary(self) -> str:
        """How far it is, in a line."""
        return (
            f"differential: {self.trials} trials, {sum(self.steps.values())} steps ({self.idle} idle), {self.starts} starts,"
            f" {self.kills} kills; {self.asked} answers judged, {self.stale} stale, {self.wrong_and_stale} of them wrong"
            f" for {self.slowest_s:.2f} s at most; {self.compared} comparisons with a fresh daemon; no difference"
        )


class Judge:
    """Compares answers with the disk."""

    def __init__(self, places: Places, rng: Random, tally: Tally) -> None:
        """Nothing is judged yet.

        Args:
            places: Where.
            rng: Chooses what is asked of what has not changed.
            tally: Of what happens.
        """
        self._places = places
        self._rng = rng
        self._tally = tally
        self._before: Truth | None = None  # as it was judged last
        self._gone: set[str] = set()  # tokens that were somewhere once

    def judge(self, client: Client, now: Truth, *, synced: bool = False) -> None:
        """Ask for what has come, gone and moved since the last time, and for some of the rest.

        Args:
            client: Of the daemon.
            now: What the disk says, which does not change meanwhile.
            synced: Everything was indexed since: no answer may be stale but for what is missing.

        Raises:
            Diverged: an answer that is not stale is wrong, or one that is stays so.
        """
        before = self._before.where if self._before is not None else {}
        self._before = now
        came = sorted(now.where.keys() - before.keys())
        gone = sorted(before.keys() - now.where.keys())
        moved = sorted(word for word in now.where.keys() & before.keys() if now.where[word] != before[word])
        self._gone = (self._gone | set(gone)) - now.where.keys()
        for words in (came, gone, moved):
            for word in self._some(words, _ASKED):
                self._ask(client, word, now, synced=synced)
        for words in (sorted(now.where), sorted(self._gone)):
            for word in self._some(words, 6 if synced else 1):
                self._ask(client, word, now, synced=synced)

    def _some(self, words: list[str], count: int) -> list[str]:
        return words if len(words) <= count else self._rng.sample(words, count)

    def _ask(self, client: Client, word: str, now: Truth, *, synced: bool) -> None:
        began = time.monotonic()
        is_first = True
        while True:
            found = client.search(word, max_results=50, min_score=0, max_chars=0)
            wrong = self.wrong(found, word, now)
            self._tally.asked += 1
            self._tally.stale += found.stale
            took_s = time.monotonic() - began
            if wrong is None:
                wrong = self._wrong_about_itself(found, now, synced=synced)
                if wrong is not None and found.stale and took_s <= _SETTLES_S:
                    time.sleep(0.05)
                    continue
                if wrong is not None:
                    raise Diverged(f"{wrong}: {_told(found)}")
                break
            is_heard = not TOKEN.match(word) and took_s < _HEARD_S and not synced
            if not found.stale and not is_heard:
                raise Diverged(f"{word} {wrong}, and the answer is not stale: {_told(found)}")
            if took_s > HEALS_S:
                raise Diverged(
                    f"{word} {wrong}, and the answer is stale and wrong for {took_s:.0f} s: {_told(found)}"
                )
            self._tally.wrong_and_stale += is_first
            is_first = False
        if not is_first:
            self._tally.slowest_s = max(self._tally.slowest_s, took_s)
        for hit in found.results:
            if word in hit.snippet and not found.stale and hit.path not in now.doubtful:
                self._read(client, hit, word, now)
                break

    def wrong(self, found: Found, word: str, now: Truth) -> str | None:
        """What an answer about a token does not say as the disk does."""
        shown = {hit.path for hit in found.results if word in hit.snippet}
        names = now.where.get(word, frozenset())
        if names & now.doubtful:
            self._tally.doubtful += 1
        elif names and not names & shown and not (shown and found.stale and now.missing):
            # Of what a root held that is missing the hit may be, where its text is the same.
            return f"is in {sorted(names)}, and is not shown there but in {sorted(shown)}"
        elsewhere = {
            path
            for path in shown - names - now.doubtful
            if not (found.stale and now.is_kept(path, self._places))
        }
        if elsewhere:
            return f"is shown in {sorted(elsewhere)}, and is in {sorted(names)}"
        if found.stale:
            return None
        untrue = [hit for hit in found.results if not self._is_true(hit, now)]
        return f"is asked for, and a hit is not what the disk says: {untrue[0]}" if untrue else None

    def _wrong_about_itself(self, found: Found, now: Truth, *, synced: bool) -> str | None:
        if synced and found.stale and not now.missing:
            return "after a sync an answer is stale"
        accepted = {"watcher"} if synced else _MAY_BE_DEGRADED
        bad = [one for one in found.degraded if one.part not in accepted]
        return f"a part of the daemon does not work: {bad}" if bad else None

    def _is_true(self, hit: Hit, now: Truth) -> bool:
        """Whether a hit of a note says what stands on its lines."""
        if hit.source == "sessions" or NOISE in hit.path or hit.path in now.doubtful:
            return True
        lines = now.notes.get(hit.path)
        return lines is not None and hit.snippet in "\n".join(lines[hit.start_line - 1 : hit.end_line])

    def _read(self, client: Client, hit: Hit, word: str, now: Truth) -> None:
        """Require that get says the same as the disk and the snippet, which has a word."""
        note = client.get(hit.path, start_line=hit.start_line, lines=hit.end_line - hit.start_line + 1)
        # Turns stand in a snippet a little otherwise than by themselves.
        told = word if hit.source == "sessions" else hit.snippet
        if note.missing or told not in note.text:
            raise Diverged(f"get does not say what the snippet does: {note} {hit}")
        lines = now.notes.get(hit.path)
        if lines is not None and note.text != "\n".join(lines[hit.start_line - 1 : hit.end_line]):
            raise Diverged(f"get does not say what the disk does: {note} {hit}")

    # --- the whole

    def compare(self, client: Client, now: Truth) -> None:
        """Require that the index is that of a fresh daemon, and that both answer alike.

        Args:
            client: Of the daemon, which has indexed everything.
            now: What the disk says.

        Raises:
            Diverged: it is not, and how.
        """
        self._tally.compared += 1
        questions = [*_QUESTIONS, *self._some(sorted(now.where), 6)]

        def admits(path: str) -> bool:
            return not now.is_kept(path.removesuffix(" (turns)"), self._places) and NOISE not in path

        until(lambda: client.status().agents["main"].dirty == 0, HEALS_S)
        with daemons.fresh(self._places) as (other, index):
            wrong: list[str] = []
            if not now.missing:
                wrong += _otherwise(client.status().agents["main"], other.status().agents["main"])
            if not now.missing and not self._places.setting.stirred:
                pairs = zip(
                    questions, daemons.ask(client, questions), daemons.ask(other, questions), strict=True
                )
                for question, one, two in pairs:
                    wrong += _first_otherwise(question, _answer(one), _answer(two))
            mine, its = contents(self._places.index), contents(index)
            wrong += differences(
                {path: each for path, each in mine.items() if admits(path)},
                {path: each for path, each in its.items() if admits(path)},
            )
            wrong += unlike(tables(self._places.index, admits), tables(index, admits))
            names = {path for path in its if path in now.notes or path in now.doubtful}
            notes = {path for path in its if not path.startswith("sessions/") and NOISE not in path}
            wrong += [f"{path} is indexed, and is no note" for path in sorted(notes - names)]
        wrong += unsound(self._places.state / "embeddings.sqlite")
        require_none(wrong)


def _otherwise(one: AgentStatus, other: AgentStatus) -> list[str]:
    """In what two daemons say otherwise of the same files."""
    names = ("files", "chunks", "skipped", "sessions", "redacted")
    return [
        f"status: {name} is {getattr(one, name)} and {getattr(other, name)}"
        for name in names
        if getattr(one, name) != getattr(other, name)
    ]


_Hit = tuple[str, int, int, float]


def _answer(found: Found) -> list[_Hit]:
    return [
        # Without the snippet: of the chunks of one long line that score alike, the one that came first goes before.
        (hit.path, hit.start_line, hit.end_line, round(hit.score, 5))
        for hit in found.results
    ]


def _first_otherwise(question: str, one: list[_Hit], two: list[_Hit]) -> list[str]:
    for place, (mine, other) in enumerate(zip_longest(one, two), 1):
        if mine != other:
            return [f"{question!r}: hit {place} is {mine} and {other}"]
    return []


def _told(found: Found) -> str:
    hits = [
        f"{hit.path}:{hit.start_line}-{hit.end_line} {hit.score:.4f} {hit.snippet[:90]!r}"
        for hit in found.results
    ]
    return f"{'stale' if found.stale else 'fresh'} {found.mode} {found.degraded} {hits[:8]}"


def printed_wrong(log: Path) -> list[str]:
    """What no daemon should have said, whatever happened: an error, or a word of memory."""
    if not log.exists():
        return []
    lines = log.read_text("utf-8", "replace").splitlines()
    return [
        line[:300]
        for line in lines
        if TOKEN.search(line)
        or any(sign in line for sign in ('"level": "error"', '"level": "critical"', "Traceback", "quokka"))
    ]


def counted(steps: dict[str, int], name: str) -> None:
    """Count a step."""
    steps[name] = Counter(steps)[name] + 1
