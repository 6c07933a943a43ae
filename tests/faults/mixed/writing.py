"""Who writes: notes of two agents and transcripts of four programs, changing a step at a time."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.daemon.agentday import Day, Talk
from tests.faults.directory import after, carry_out, draw, is_note, on_disk, section
from tests.faults.mixed.household import MINE, Household
from tests.faults.mixed.ledger import Ledger, Place

_MARKS = 8  # notes of each agent that hold a word like no other, again and again another one
_FEWEST = 3
_SENTENCES = (
    "The word of the day is {}.\n",
    "- agreed with Osvaldo: {} comes first, the rest can wait\n",
    "数据库迁移的代号是 {}，由老周负责。\n",
    "```\nretry({})\n```\n",
)


class Writer:
    """Changes files, and has the ledger know of each word."""

    def __init__(
        self, household: Household, ledger: Ledger, rng: Random, secrets: Sequence[str] = ()
    ) -> None:
        """Nothing is written yet.

        Args:
            household: Where.
            ledger: Of the words.
            rng: Decides what happens.
            secrets: Texts with something secret, some of which are said in transcripts.
        """
        self.changes = 0
        self._household = household
        self._ledger = ledger
        self._rng = rng
        self._files: dict[str, dict[str, bytes]] = {agent: {} for agent in MINE}
        self._marks: dict[Place, str] = {}
        self._words = 0
        self._day = Day(household.home, rng, secrets)
        self._held: dict[Path, tuple[int, bytes]] = {}  # transcript -> its inode, and what it held

    def begin(self) -> None:
        """Write what is there before anybody looks."""
        for agent in MINE:
            for _ in range(_FEWEST + 2):
                self._mark(agent)
            for _ in range(8):
                self._change(agent)
        for _ in range(10):
            self._day.happen()
        self._hear()

    def step(self) -> None:
        """Something changes."""
        self.changes += 1
        agent = self._rng.choice(MINE)
        kind = self._rng.random()
        if kind < 0.40:
            self._mark(agent)
        elif kind < 0.46:
            self._rename(agent)
        elif kind < 0.50:
            self._delete(agent)
        elif kind < 0.75:
            self._change(agent)
        else:
            self._day.happen()
            self._hear()

    def finish(self) -> None:
        """Whoever is in the middle of something comes to its end."""
        self._day.finish()
        self._hear()

    def notes(self, agent: str) -> list[str]:
        """The notes of an agent, as an index is to have them."""
        marks = [place.path for place in self._marks if place.agent == agent]
        return sorted([path for path in self._files[agent] if is_note(path)] + marks)

    def surprises(self) -> list[str]:
        """Files that are not what was written there."""
        return [
            f"{agent} {path}"
            for agent in MINE
            for path, content in on_disk(self._household.workspace(agent)).items()
            if Place(agent, path) not in self._marks and self._files[agent].get(path) != content
        ]

    def _mark(self, agent: str) -> None:
        """A note holds another word now, or is new."""
        place = Place(agent, f"memory/mark-{self._rng.randrange(_MARKS)}.md")
        self._words += 1
        word = f"landmark{self._words:06}x"
        text = f"# {place.path}\n\n" + self._rng.choice(_SENTENCES).format(word)
        if self._rng.random() < 0.3:
            text += "\n" + section(self._rng.randrange(1000)).decode()
        file = self._file(place)
        if self._rng.random() < 0.5:
            file.write_text(text, encoding="utf-8")
        else:
            part = file.with_name(f".{file.name}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(file)
        if place in self._marks:
            self._ledger.goes(self._marks[place])
        self._marks[place] = word
        self._ledger.stands(word, place)

    def _rename(self, agent: str) -> None:
        if (place := self._some(agent)) is None:
            return
        to = Place(agent, f"memory/moved-{self._rng.randrange(_MARKS)}.md")
        if to == place:
            return
        self._file(place).replace(self._file(to))
        if to in self._marks:
            self._ledger.goes(self._marks[to])
        self._marks[to] = self._marks.pop(place)
        self._ledger.stands(self._marks[to], to)

    def _delete(self, agent: str) -> None:
        if (place := self._some(agent)) is not None:
            self._file(place).unlink()
            self._ledger.goes(self._marks.pop(place))

    def _some(self, agent: str) -> Place | None:
        """A note that may go."""
        places = [place for place in self._marks if place.agent == agent]
        return self._rng.choice(places) if len(places) > _FEWEST else None

    def _change(self, agent: str) -> None:
        """A note of any other kind is changed in any way."""
        change = draw(self._rng, self._files[agent])
        carry_out(change, self._household.workspace(agent))
        self._files[agent] = after(self._files[agent], change)

    def _hear(self) -> None:
        """Note what is said in transcripts, and what is taken back."""
        for talk in self._day.talks:
            if talk.is_there and not self._has_only_grown(talk):
                # Whoever looks at the wrong moment sees none of it.
                for word in talk.words:
                    self._ledger.touch(word)
        for word, name in self._day.words.items():
            self._ledger.stands(word, Place("main", name), waits=True)
        for word in self._day.unsaid:
            self._ledger.goes(word)

    def _has_only_grown(self, talk: Talk) -> bool:
        path = talk.session.path
        found = path.stat().st_ino, path.read_bytes()
        held = self._held.get(path)
        self._held[path] = found
        return held is not None and held[0] == found[0] and found[1].startswith(held[1])

    def _file(self, place: Place) -> Path:
        return self._household.workspace(place.agent) / place.path
