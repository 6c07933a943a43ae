"""The external search program qmd as a backend: qmd proposes lines of files, and memd reads and shows them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self

import msgspec

from memd.backends.backend import (
    BackendAnswer,
    BackendEnvironment,
    BackendQuestion,
    BackendStatus,
    IndexedAgent,
    ProgramStatus,
)
from memd.backends.builtin import Builtin
from memd.backends.qmd import commands, parse
from memd.backends.qmd.collections import WantedCollection
from memd.backends.qmd.commands import Mode, Version
from memd.backends.qmd.export import Export, PageReader
from memd.backends.qmd.hits import (
    deduplicated,
    hit_of,
    locate,
    merged,
    path_of_entry,
    shown_lines,
    similar_path_finder,
    sources_alternating,
)
from memd.backends.qmd.installation import QmdPlaces, find_program, prepare, qmd_environ
from memd.backends.qmd.parse import QmdEntry
from memd.backends.qmd.process import CollectionMissing, QmdFailed, QmdTimedOut, QmdUnavailable, UnknownOption
from memd.backends.qmd.runner import Runner
from memd.backends.qmd.updater import QmdUpdater, mode_of
from memd.domain_types import DegradedPart, FallbackUse, FoundHit
from memd.redact.rule import rules_key
from memd.runtime.profiling import timed_part
from memd.runtime.threads import Threads
from memd.search.query import SUPPORT, Query
from memd.search.query import parse as parse_question
from memd.search.terms import held
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.files import KnownFile

PROBE_S = 5.0
WAIT_S = 0.5  # for an update that is running, or takes in recent changes
COLLECTIONS_S = 2.0  # for the first collections to exist
READERS = 4  # threads that read files
# Results requested from qmd, whatever max_results is, so that a larger max_results only appends hits. Some of
# them are of files that the caller may not see, or of one file in two collections.
ASKED_FOR = 60
_BUILTIN_HITS = 50
_LEAST_S = 0.2  # a second call with less time left is not worthwhile
_MODES: Mapping[Mode, str] = {"search": "keyword", "vsearch": "vector", "query": "hybrid"}


class _Asked(msgspec.Struct, frozen=True):
    """A question on its way to qmd."""

    question: BackendQuestion
    query: Query
    collections: Mapping[str, WantedCollection]  # those that the caller may search, by name
    deadline: float  # monotonic time
    # Path -> line ranges that pass the question's filter; None: it has no filter.
    allowed: Mapping[str, Sequence[tuple[int, int]]] | None = None

    def lets_through(self, hit: FoundHit) -> bool:
        """Return whether some lines of a hit pass the filter."""
        if self.allowed is None:
            return True
        lines = self.allowed.get(hit.path, ())
        return any(first <= hit.end_line and hit.start_line <= last for first, last in lines)


class QmdBackend:
    """The qmd of one agent.

    A result is shown only if it is a file of the built-in index that the caller may see. memd reads the text
    itself, through the fence and the redaction, at the lines that qmd returned. Files that qmd does not know
    yet, or never will, are searched in the built-in index, so that a note that was just written is found.
    """

    def __init__(
        self,
        agent: IndexedAgent,
        builtin: Builtin,
        runner: Runner,
        version: Version | None,
        embed_slot: asyncio.Lock,
    ) -> None:
        """Use a qmd that was found to answer; see `create`."""
        self._settings = agent.settings
        self._index = agent.index
        self._index_service = agent.index_service
        self._roots = tuple(agent.rules.roots)
        self._builtin = builtin
        self.runner = runner
        self._version = version
        self._places = QmdPlaces.of(agent.index.file)
        # search modes that this qmd does not know -> what is used instead.
        self._instead: dict[Mode, Mode] = {}
        self._threads = Threads(READERS, f"memd-qmd-{agent.id}")
        self._pages = PageReader(agent.index, agent.rules, self._threads)
        self._export = Export(
            self._places,
            self._pages,
            self._threads,
            rules=f"{agent.settings.redact.mode} {rules_key(agent.settings.redact)}",
            notes=agent.rules.notes_redactor is not None,
            session_days=agent.settings.qmd.session_days,
        )
        self.updater = QmdUpdater(agent, runner, self._export, self._threads, embed_slot)

    @classmethod
    async def create(cls, agent: IndexedAgent, environment: BackendEnvironment, builtin: Builtin) -> Self:
        """Find qmd and check that it answers; `run` creates its collections.

        Args:
            agent: The agent whose files it searches.
            environment: The daemon's environment.
            builtin: The built-in backend on the same index.

        Raises:
            QmdUnavailable: qmd cannot be used.
        """
        threads = Threads(1, f"memd-qmd-find-{agent.id}")
        environ, home, places = environment.environ, environment.home, QmdPlaces.of(agent.index.file)
        program = await threads.run(
            find_program,
            agent.settings.qmd.command,
            workspace=agent.settings.workspace,
            environ=environ,
            home=home,
        )
        await threads.run(prepare, places, environ, home)
        runner = Runner(program, qmd_environ(environ, places, program))
        try:
            parse.collections(await runner.ask(commands.LIST, timeout_s=PROBE_S))
            version = await _version(runner)
        except QmdFailed as failure:
            raise QmdUnavailable(
                f"{str(failure).rstrip('.')}. Does `{program} collection list` work in a terminal, and is what runs it (node) on the PATH of the daemon?"
            ) from failure
        return cls(agent, builtin, runner, version, environment.embed_slot)

    async def run(self) -> None:
        """Keep qmd up to date until cancelled."""
        await self.updater.run()

    async def close(self) -> None:
        """Kill running qmd processes; calls that wait for them raise QmdFailed."""
        await self.runner.close()

    def status(self) -> BackendStatus:
        """Return the backend's status; its hits come from no provider of memd."""
        return BackendStatus(
            backend="qmd",
            provider="qmd",
            model="qmd",
            vector=self.updater.vectors,
            program=self.program_status,
        )

    @property
    def program_status(self) -> ProgramStatus:
        """What qmd reports of itself, and what memd exports for it."""
        state = self.updater.state
        return ProgramStatus(
            command=str(self.runner.program),
            version=None if self._version is None else ".".join(map(str, self._version)),
            search_mode=self._mode,
            collections=tuple(one.name for one in state.collections),
            files=state.files,
            exported=len(self._export.files),
            left_alone=self._export.left_alone,
            last_update=state.last_update,
            update_failure=state.update_failure,
            updating=self.updater.updating,
            last_embed=state.last_embed,
            warnings=state.warnings,
        )

    # --- a search

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the hits; changes of a moment ago are among them, else the answer is stale.

        The score is qmd's, and min_score is not applied: the scales of its search modes are not comparable
        with the built-in backend's.

        Raises:
            QmdFailed: qmd does not answer, or its output is invalid.
            StoreUnavailable: the built-in index does not answer.
        """
        try:
            return await self._search(question)
        except StoreDamaged as damage:
            self._index.damage.report(str(damage))
            raise StoreUnavailable(f"the index is damaged and is being rebuilt: {damage}") from damage

    async def _search(self, question: BackendQuestion) -> BackendAnswer:
        if question.by_time:
            answer = await self._builtin.search(question)
            untold = FallbackUse("qmd", "qmd does not report the dates of its results")
            return msgspec.structs.replace(answer, fallback=untold)
        is_fresh = await self._index_service.catch_up()
        with timed_part("waiting for an update of qmd"):
            await self.updater.wait_for_collections(COLLECTIONS_S)
            await self.updater.caught_up(WAIT_S)
        state = self.updater.state
        if not state.collections and state.update_failure is not None:
            raise QmdFailed(state.update_failure)
        mode = self._mode
        asked = _Asked(
            question,
            parse_question(question.text, question.now),
            {one.name: one for one in state.collections if one.kinds & question.kinds},
            time.monotonic() + self._settings.qmd.timeout_ms / 1000,
            None
            if question.wanted.is_empty
            else await self._index.allowed_lines(question.wanted, question.kinds),
        )
        best = await self._all_words(asked, mode)
        own, own_answer = await self._own(question)
        hits = merged(best, own)
        if mode == "search" and len(hits) < question.max_results:
            others = await self._any_words(asked, hits)
            hits = deduplicated([*hits, *others])
        if asked.allowed is not None and len(hits) < question.max_results:
            own_answer = own_answer or await self._builtin.search(question)
            hits = deduplicated([*hits, *own_answer.hits])
        return BackendAnswer(
            hits=tuple(hits[: question.max_results]),
            backend="qmd",
            provider="qmd",
            model="qmd",
            mode=_MODES[mode],
            stale=not is_fresh or (own_answer is not None and own_answer.stale),
            degraded=self._degraded(own_answer, is_filtered=asked.allowed is not None),
        )

    @property
    def _mode(self) -> Mode:
        mode = mode_of(self._settings.qmd, self.updater.vectors)
        return self._instead.get(mode, mode)

    def _degraded(self, own: BackendAnswer | None, *, is_filtered: bool) -> tuple[DegradedPart, ...]:
        health = self._index_service.health
        vectors = self.updater.vectors
        found = (
            [DegradedPart("vector", f"qmd searches by words alone: {vectors.reason}")]
            if vectors.reason
            else []
        )
        found += [
            DegradedPart(part, reason)
            for part, reason in (
                ("watcher", health.watcher),
                ("rebuild", health.rebuild),
                ("store", health.store),
            )
            if reason is not None
        ]
        if is_filtered:
            why = "qmd does not filter: what it proposed was filtered afterwards, and the built-in search added to it"
            found.append(DegradedPart("filter", why))
        return (*found, *(one for one in (() if own is None else own.degraded) if one.part == "keyword"))

    async def _own(self, question: BackendQuestion) -> tuple[list[FoundHit], BackendAnswer | None]:
        """Return the built-in index's hits in files that qmd does not know, or only in an older version."""
        unknown = await self.updater.unknown()
        if not unknown:
            return [], None
        answer = await self._builtin.search(msgspec.structs.replace(question, max_results=_BUILTIN_HITS))
        return [hit for hit in answer.hits if hit.path in unknown], answer

    async def _all_words(self, asked: _Asked, mode: Mode) -> list[FoundHit]:
        """Return qmd's hits for the whole question."""
        words = commands.words(asked.query)
        text = words.all if mode == "search" else commands.sentence(asked.question.text)
        if not text or not asked.collections:
            return []
        try:
            found = await self._ask(asked, lambda names: commands.search(mode, text, names, ASKED_FOR))
        except UnknownOption:
            other: Mode = "search" if mode == "query" else "query"
            text = words.all if other == "search" else commands.sentence(asked.question.text)
            if not text:
                return []
            found = await self._ask(asked, lambda names: commands.search(other, text, names, ASKED_FOR))
            self._instead[mode] = other
        return await self._hits(asked, found)

    async def _any_words(self, asked: _Asked, before: Sequence[FoundHit]) -> list[FoundHit]:
        """Return qmd's hits for parts of a question, if they cover half of it or one of its names.

        qmd looks for documents that contain all words of a question, which few do.
        """
        words = commands.words(asked.query)
        left_s = asked.deadline - time.monotonic()
        if len(words.each) < 2 or not asked.collections or left_s < _LEAST_S:
            return []
        try:
            if commands.takes_alternatives(self._version):
                lines = (words.all, *words.each)
                found = await self._ask(asked, lambda names: commands.alternatives(lines, names, ASKED_FOR))
            else:
                found = []
                for word in words.each[:3]:
                    found += await self._ask(
                        asked, lambda names, word=word: commands.search("search", word, names, ASKED_FOR)
                    )
        except UnknownOption:
            return []
        except QmdFailed:
            if before:
                return []  # the hits found before are still valid
            raise
        shares = [(_share(asked.query, hit.snippet), hit) for hit in await self._hits(asked, found)]
        ranked = sorted((one for one in shares if one[0] > 0), key=lambda one: -one[0])
        return sources_alternating(deduplicated(hit for _, hit in ranked))

    async def _ask(self, asked: _Asked, arguments: "_Arguments") -> list[QmdEntry]:
        """Return qmd's results for some collections; one that is missing is added again, once."""
        try:
            return await self._ask_once(asked, arguments)
        except CollectionMissing as missing:
            try:
                with timed_part("waiting for an update of qmd"):
                    async with asyncio.timeout(max(_LEAST_S, asked.deadline - time.monotonic())):
                        await self.updater.restore_collections()
            except TimeoutError:
                raise QmdFailed(f"{missing}; it could not be added again in time") from None
            return await self._ask_once(asked, arguments)

    async def _ask_once(self, asked: _Asked, arguments: "_Arguments") -> list[QmdEntry]:
        names = list(asked.collections)
        groups = [names] if commands.takes_several(self._version) else [[name] for name in names]
        unsaid = commands.unsaid(asked.question.text)
        left_s = max(_LEAST_S, asked.deadline - time.monotonic())
        runs = [
            asyncio.create_task(self.runner.search(arguments(group), timeout_s=left_s, unsaid=unsaid))
            for group in groups
        ]
        try:
            ended, _ = await asyncio.wait(runs, return_when=asyncio.FIRST_EXCEPTION)
            for run in ended:
                run.result()  # the first failure ends the others
            said = [run.result() for run in runs]
        finally:
            for run in runs:
                run.cancel()
            await asyncio.gather(*runs, return_exceptions=True)
        found = [entry for text in said for entry in parse.entries(text, "qmd search")]
        return found if len(groups) == 1 else sorted(found, key=lambda entry: -entry.score)

    # --- from results to hits

    async def _hits(self, asked: _Asked, found: Sequence[QmdEntry]) -> list[FoundHit]:
        """Return the hits for qmd's results, in qmd's order."""
        hits: list[FoundHit] = []
        counts: dict[str, int] = {}
        enough = 2 * asked.question.max_results + 10
        alike: Callable[[QmdEntry], str | None] | None = None
        for entry in found:
            path = path_of_entry(entry, asked.collections, self._roots, self._export.made_of)
            known = None if path is None else await self._index.find(path)
            if known is None and (entry.file is None or not commands.keeps_names(self._version)):
                alike = alike or await self._likeness(asked)
                path = alike(entry)
                known = None if path is None else await self._index.find(path)
            # Whatever the collection: the index decides what a file is, and who may see it.
            if known is None or known.kind not in asked.question.kinds:
                continue
            if counts.get(known.kind.source, 0) >= enough:
                continue
            hit = await self._hit(asked, entry, known)
            if hit is not None and asked.lets_through(hit):
                hits.append(hit)
                counts[hit.source] = counts.get(hit.source, 0) + 1
        return hits

    async def _likeness(self, asked: _Asked) -> Callable[[QmdEntry], str | None]:
        # On a thread, as it examines the name of every file.
        return await self._threads.run(
            similar_path_finder,
            asked.collections,
            self._roots,
            (await self._index.known()).values(),
            self._export.files,
            self._places.base,
        )

    async def _hit(self, asked: _Asked, entry: QmdEntry, known: KnownFile) -> FoundHit | None:
        with timed_part("reading text"):
            text = await self._pages.page(known.path, known.kind)
        if text is None:
            return None
        place = locate(text.lines, entry)
        if place is None:
            return None
        shown = shown_lines(text, place, entry, asked.query.terms, self._settings.limits.max_snippet_chars)
        return None if shown is None else hit_of(known.path, known.kind, entry.score, shown)


class _Arguments(Protocol):
    """Returns the arguments of a search in some collections."""

    def __call__(self, names: Sequence[str]) -> tuple[str, ...]: ...


def _share(query: Query, text: str) -> float:
    """Return how much of a question a text covers, 0..1; 0 if that is too little to be an answer."""
    terms = held([text], query.terms)
    share = query.share(terms)
    is_named = any(term < len(query.phrases) for term in terms)
    return share if share >= SUPPORT else SUPPORT * is_named


async def _version(runner: Runner) -> Version | None:
    """Return the version of qmd; None if it does not say, as old ones.

    Raises:
        QmdTimedOut: it did not answer in time, as on a busy machine: a new one would be used like an old one from then on.
    """
    try:
        return parse.version(await runner.ask(commands.VERSION, timeout_s=PROBE_S))
    except QmdTimedOut:
        raise
    except QmdFailed:
        return None
