"""memd-ctl eval: measures search on questions with known answers, and writes a first set of such questions."""

import json
import re
import statistics
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from memd.ctl.failures import NOT_FOUND, Failed, UsageError
from memd.ctl.invocation import Invocation
from memd.ctl.output.humanize import counted, visible
from memd.ctl.output.terminal import Outcome
from memd.text.memory_paths import is_utf8
from memd.text.tokens import fts_text, is_cjk
from memd_client.blocking import Client
from memd_client.messages import PLACES_FROM, Hit, Mode

TOP = 6
NO_FILTER = "no filter"
_RECALLED = (1, 3, TOP)
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")
_NOT_SEEN = 5  # questions listed per mode, unless --all is given
_LINE_CHARS = range(24, 400)  # length of a line from which a question is made
_WORDS_ASKED = 4
_CJK_ASKED = 10  # characters
_HEAD = """\
# Questions for `memd-ctl eval`. Each was made of the rarest words of one line of a note: put it as you would ask, and
# delete those that nobody would. A question without evidence is one that nothing is to be found for.
"""


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that answers a question."""

    text: str
    path: str | None = None  # path of the note, as in a hit; None: any note
    line: int | None = None  # its line in the note; None: a hit must show the text


class EvalQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question with its evidence; none: nothing should be found."""

    question: str
    evidence: list[Evidence | str] = []
    now: str | None = None  # the day on which it is asked
    since: str | None = None  # filters, see `memd-ctl search`
    until: str | None = None
    tags: list[str] = []
    path: list[str] = []

    def __post_init__(self) -> None:
        """Check the question.

        Raises:
            ValueError: it is empty, which a search would refuse.
        """
        if not self.question.strip():
            raise ValueError("the question is empty")

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of the filters that it uses."""
        given = {"since": self.since, "until": self.until, "tags": self.tags, "path": self.path}
        return tuple(name for name, value in given.items() if value) or (NO_FILTER,)

    @property
    def texts(self) -> list[Evidence]:
        """Its evidence, each with its fields."""
        return [Evidence(one) if isinstance(one, str) else one for one in self.evidence]


class _QuestionFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: list[EvalQuestion]


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Mean scores of the questions in one mode; None: there is no question of that kind."""

    agent: str | None
    mode: str
    filter: str | None = None  # only questions with that filter; None: all
    questions: int  # number of questions with evidence
    recall_1: float | None  # share of the evidence within the lines of the first hit
    recall_3: float | None
    recall_6: float | None
    seen: float | None  # share of the evidence that is visible in the snippets
    mrr: float | None  # 1 / rank of the first hit with evidence
    nothing: float | None  # share of the questions without evidence that get no hit, or only weak ones
    ms: float  # median time of a search, in milliseconds
    not_seen: list[str]  # questions without visible evidence


def run_eval(invocation: Invocation) -> Outcome:
    """Measure, or write questions for editing."""
    options = invocation.options
    if options.make is not None:
        return _make(invocation)
    if options.file is None:
        raise UsageError(
            "No file is named.", "`memd-ctl eval --make 20 > questions.toml` writes a first one."
        )
    questions = read_questions(Path(options.file))
    agents = [options.agent] if options.beside is None else [options.agent, options.beside]
    with invocation.client() as memd:
        scores = [
            one
            for agent in agents
            for mode in options.mode or MODES
            for one in measured(memd, questions, agent, mode)
        ]
        waiting = sum(one.vectors.waiting for one in memd.status(agent=options.agent).agents.values())
    notes = (f"{counted(waiting, 'chunk')} had no vector yet.",) if waiting else ()
    most = None if options.all else _NOT_SEEN
    return Outcome(scores, "\n".join(_page(scores, questions, most)), notes)


def read_questions(file: Path) -> list[EvalQuestion]:
    """Read questions from a file: TOML with [[question]] tables, or one JSON document per line.

    Raises:
        Failed: it cannot be read, or is not of that form.
    """
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".jsonl":
            questions = [
                _read_line(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()
            ]
        else:
            questions = msgspec.convert(tomllib.loads(text), _QuestionFile).question
    except FileNotFoundError:
        raise Failed("not_found", f"{visible(str(file))} does not exist.", exit_code=NOT_FOUND) from None
    except OSError as error:
        raise Failed("failed", f"{visible(str(file))} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise Failed(
            "bad_request",
            f"{visible(str(file))} cannot be used: {visible(str(error))}.",
            "`memd-ctl help commands` shows the form; `memd-ctl eval --make 20` writes an example.",
        ) from None
    if not questions:
        raise Failed("bad_request", f"{visible(str(file))} has no questions.", "")
    return questions


def _read_line(number: int, line: str) -> EvalQuestion:
    """Parse a line of a .jsonl file. Raises ValueError, with the number of the line."""
    try:
        return msgspec.json.decode(line, type=EvalQuestion)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


class _Asked(msgspec.Struct, frozen=True):
    """A question with its results; the shares are None if it has no evidence."""

    one: EvalQuestion
    took_ms: float
    recall: tuple[float, ...] | None = None  # one for each of _RECALLED
    seen: float | None = None
    rank: float | None = None
    nothing: float | None = None  # None if it has evidence


def measured(
    memd: Client, questions: Sequence[EvalQuestion], agent: str | None, mode: Mode
) -> Iterator[Scores]:
    """Ask all questions in one mode; yield the scores of all and, if their filters differ, by filter."""
    asked = [_asked(memd, one, agent, mode) for one in questions]
    yield _scores(asked, agent, mode, None)
    if len({one.filters for one in questions}) > 1:
        for name in sorted({name for one in questions for name in one.filters}, key=_in_order):
            yield _scores([one for one in asked if name in one.one.filters], agent, mode, name)


def _in_order(name: str) -> tuple[bool, str]:
    return name != NO_FILTER, name


def _asked(memd: Client, one: EvalQuestion, agent: str | None, mode: Mode) -> _Asked:
    begun = time.perf_counter()
    hits = memd.search(
        one.question,
        max_results=TOP,
        agent=agent,
        now=one.now,
        mode=mode,
        since=one.since,
        until=one.until,
        tags=one.tags,
        path=one.path,
    ).results
    took = 1000 * (time.perf_counter() - begun)
    if not one.evidence:
        return _Asked(one, took, nothing=float(all(hit.weak for hit in hits)))
    recall = tuple(
        _share([any(covers(hit, text) for hit in hits[:most]) for text in one.texts]) for most in _RECALLED
    )
    seen = _share([any(shows(hit, text.text) for hit in hits) for text in one.texts])
    places = [n for n, hit in enumerate(hits, 1) if any(covers(hit, text) for text in one.texts)]
    return _Asked(one, took, recall, seen, 1 / places[0] if places else 0.0)


def _scores(asked: Sequence[_Asked], agent: str | None, mode: Mode, name: str | None) -> Scores:
    recalls = [one.recall for one in asked if one.recall is not None]
    first, third, sixth = (_mean([one[n] for one in recalls]) for n in range(len(_RECALLED)))
    return Scores(
        agent=agent,
        mode=mode,
        filter=name,
        questions=len(recalls),
        recall_1=first,
        recall_3=third,
        recall_6=sixth,
        seen=_mean([one.seen for one in asked if one.seen is not None]),
        mrr=_mean([one.rank for one in asked if one.rank is not None]),
        nothing=_mean([one.nothing for one in asked if one.nothing is not None]),
        ms=statistics.median(one.took_ms for one in asked),
        not_seen=[one.one.question for one in asked if one.seen == 0],
    )


def shows(hit: Hit, text: str) -> bool:
    """Return whether a text is in a snippet, ignoring whitespace and case."""
    return _squeezed(text) in _squeezed(hit.snippet)


def covers(hit: Hit, evidence: Evidence) -> bool:
    """Return whether evidence is within the lines of a hit."""
    if evidence.path is not None and evidence.path != hit.path:
        return False
    if evidence.path is None or evidence.line is None:
        return shows(hit, evidence.text)
    return hit.start_line <= evidence.line <= hit.end_line


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 4) if values else None


def _page(scores: Sequence[Scores], questions: Sequence[EvalQuestion], most: int | None) -> Iterator[str]:
    named = len({one.agent for one in scores}) > 1
    names = [
        f"  {one.filter}"
        if one.filter
        else " ".join([one.agent or "(default)", one.mode])
        if named
        else one.mode
        for one in scores
    ]
    size = max(map(len, [*names, "mode"]))
    with_evidence = sum(bool(one.evidence) for one in questions)
    yield f"{counted(with_evidence, 'question')} with evidence, {len(questions) - with_evidence} without"
    yield ""
    heads = ("recall@1", "recall@3", "recall@6", "seen", "mrr", "nothing", "ms")
    yield "  ".join(["mode".ljust(size), *(head.rjust(8) for head in heads)])
    for name, one in zip(names, scores, strict=True):
        figures = (one.recall_1, one.recall_3, one.recall_6, one.seen, one.mrr, one.nothing)
        cells = ["-" if value is None else f"{value:.3f}" for value in figures] + [f"{one.ms:.1f}"]
        yield "  ".join([visible(name).ljust(size), *(cell.rjust(8) for cell in cells)])
    for name, one in zip(names, scores, strict=True):
        if one.not_seen and one.filter is None:
            yield ""
            yield f"Not seen, {visible(name)}: {len(one.not_seen)}"
            yield from (f"    {visible(question)}" for question in one.not_seen[:most])
            if most is not None and len(one.not_seen) > most:
                yield f"    {len(one.not_seen) - most} more with --all"


# --- a first set


def _make(invocation: Invocation) -> Outcome:
    """Make questions from the notes of an agent, as TOML on stdout."""
    with invocation.client() as memd:
        agents = memd.status().agents
        agent = invocation.options.agent or ("main" if "main" in agents else next(iter(agents), None))
        if agent not in agents:
            raise Failed(
                "unknown_agent", f"There is no agent {visible(str(agent))}.", "`memd-ctl status` lists them."
            )
        workspace = Path(agents[agent].workspace)
        files = [workspace / name for name in ("MEMORY.md", "USER.md")] + sorted(
            workspace.glob("memory/**/*.md")
        )
        paths = [file.relative_to(workspace).as_posix() for file in files]
        indexable = [path for path in paths if is_utf8(path)]
        notes = {path: _text(memd, path, agent) for path in indexable}
    made = made_questions({path: text for path, text in notes.items() if text}, invocation.options.make)
    if not made:
        raise Failed("not_found", f"No note of {visible(agent)} has a line to ask for.", exit_code=NOT_FOUND)
    left_out = len(paths) - len(indexable)
    remarks = (f"{counted(left_out, 'file')} left out: name is not UTF-8.",) if left_out else ()
    return Outcome(made, as_toml(made), remarks)


def _text(memd: Client, path: str, agent: str) -> str:
    """Return the lines of a note as they are indexed; empty if it is not."""
    pieces: list[str] = []
    following: int | None = 1
    while following is not None and following < PLACES_FROM:
        note = memd.get(path, start_line=following, agent=agent)
        pieces.append(note.text)
        following = note.next_line
    return "\n".join(pieces)


def made_questions(notes: dict[str, str], most: int) -> list[EvalQuestion]:
    """Make questions for lines of notes: from each note in turn the line with the rarest words.

    Args:
        notes: Texts by path.
        most: The most questions.
    """
    often = Counter(word for text in notes.values() for word in set(fts_text(text).split()))
    by_note = []
    for path, text in notes.items():
        lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), 1)]
        asked = [(_telling(line, often), n, line) for n, line in lines if _is_askable(line)]
        ranked = sorted(
            ((words, n, line) for words, n, line in asked if words), key=lambda one: _rarity(one[0], often)
        )
        by_note.append([EvalQuestion(words, [Evidence(line, path, n)]) for words, n, line in ranked])
    made: list[EvalQuestion] = []
    place = 0
    while len(made) < most and any(place < len(some) for some in by_note):
        made += [some[place] for some in by_note if place < len(some)]
        place += 1
    return made[:most]


def _is_askable(line: str) -> bool:
    return len(line) in _LINE_CHARS and not line.startswith(("#", "```", "---", "|", "<"))


def _telling(line: str, often: Counter[str]) -> str:
    """Return the rarest words of a line, in its order; for Chinese text a piece between punctuation."""
    if sum(map(is_cjk, line)) > len(line) // 3:
        pieces = re.split(r"[\s，。；：、！？,.;:!?()（）「」《》*_`-]+", line)
        return max(pieces, key=lambda piece: sum(map(is_cjk, piece)))[:_CJK_ASKED]
    words = list(dict.fromkeys(re.findall(r"\w[\w'’.-]*\w", line)))
    rare = sorted(words, key=lambda word: (_rarity(word, often), -len(word)))[:_WORDS_ASKED]
    return " ".join(word for word in words if word in rare) if len(words) >= _WORDS_ASKED else ""


def _rarity(text: str, often: Counter[str]) -> float:
    """Return in how many notes a word of a text occurs, on average."""
    return statistics.fmean([often[word] for word in fts_text(text).split()] or [0])


def as_toml(questions: Sequence[EvalQuestion]) -> str:
    """Return questions in the form that read_questions reads."""

    def said(value: object) -> str:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    tables = []
    for one in questions:
        lines = ["[[question]]", f"question = {said(one.question)}"]
        for text in one.texts:
            fields = {"text": text.text, "path": text.path, "line": text.line}
            inner = ", ".join(
                f"{name} = {said(value)}" for name, value in fields.items() if value is not None
            )
            lines.append(f"evidence = [{{ {inner} }}]")
        tables.append("\n".join(lines))
    return "\n\n".join([_HEAD.rstrip("\n"), *tables])
