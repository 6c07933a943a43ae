"""memd-ctl eval."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from memd.ctl.__main__ import main
from memd.ctl.commands.evaluate import (
    MODES,
    EvalQuestion,
    Evidence,
    as_toml,
    covers,
    made_questions,
    measured,
    read_questions,
    shows,
)
from memd.ctl.failures import Failed
from memd_client.blocking import Client
from memd_client.messages import Hit
from tests.bounds import shipped
from tests.daemon.process import Daemon

HIT = Hit(path="memory/a.md", start_line=3, end_line=5, score=0.5, snippet="the Kettle\n  leaks, 水壶漏水")
NOTES = {
    "MEMORY.md": "# Choices\n\n- the billing service keeps its rows in PostgreSQL since spring\n",
    "memory/kitchen.md": "# Kitchen\n\n- the copper kettle leaks at its handle, take the enamel one\n- 水壶的把手漏水，先用搪瓷的那一个，星期三去修\n",
}


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [("kettle leaks", True), ("水壶 漏水", True), ("kettles", False), ("the kettle leaks, 水", True)],
)
def test_a_text_is_shown_whatever_its_blanks(text: str, is_shown: bool) -> None:
    """Capital letters do not count either."""
    assert shows(HIT, text) == is_shown


@pytest.mark.parametrize(
    ("evidence", "is_covered"),
    [
        (Evidence("anything", "memory/a.md", 5), True),
        (Evidence("kettle", "memory/a.md", 6), False),
        (Evidence("kettle", "memory/b.md", 4), False),
        (Evidence("kettle", "memory/a.md"), True),
        (Evidence("kettle", None, 9), True),
        (Evidence("pan", "memory/a.md"), False),
    ],
)
def test_evidence_is_covered_by_its_line(evidence: Evidence, is_covered: bool) -> None:
    """Without a line, or a note that it is of, the snippet must show it."""
    assert covers(HIT, evidence) == is_covered


def test_both_forms_are_read(tmp_path: Path) -> None:
    """TOML with tables, and a JSON document a line; evidence is a text, or one with its place."""
    wanted = [
        EvalQuestion("what leaks?", ["kettle"]),
        EvalQuestion('who "she" is', [Evidence("a\tb\\ \x7f é", "memory/a.md", 3)]),
        EvalQuestion("nothing", now=None),
    ]
    (tmp_path / "q.toml").write_text(
        '[[question]]\nquestion = "what leaks?"\nevidence = ["kettle"]\n\n' + as_toml(wanted[1:]),
        encoding="utf-8",
    )
    assert read_questions(tmp_path / "q.toml") == wanted
    lines = [
        {"question": "what leaks?", "evidence": ["kettle"]},
        {
            "question": 'who "she" is',
            "evidence": [{"text": "a\tb\\ \x7f é", "path": "memory/a.md", "line": 3}],
        },
        {"question": "nothing"},
    ]
    (tmp_path / "q.jsonl").write_text("\n\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert read_questions(tmp_path / "q.jsonl") == wanted


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.toml", b"question = 3"),
        ("q.toml", b"[[question]]\nquestoin = 'x'"),
        ("q.toml", b"\xff"),
        ("q.toml", b"[[question]"),
        ("q.toml", b"question = []"),
        ("q.jsonl", b"{}"),
        ("q.jsonl", b"\n"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    """A field that is misspelled would silently count for nothing."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Failed, match=r"has no questions\.|cannot be used: "):
        read_questions(tmp_path / name)


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    """By its number in the file; a line separator within a text is no end of a line."""
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "a\u2028b"}\n\n{"question": 3}\n', encoding="utf-8")
    with pytest.raises(Failed, match=r"q\.jsonl cannot be used: line 3: Expected `str`, got `int`"):
        read_questions(file)
    file.write_text('{"question": "a\u2028b"}\n', encoding="utf-8")
    assert [one.question for one in read_questions(file)] == ["a\u2028b"]


@pytest.mark.parametrize("question", ["", " "])
def test_an_empty_question_is_refused(tmp_path: Path, question: str) -> None:
    """As a search refuses it; it would count as one for which nothing is found."""
    file = tmp_path / "q.jsonl"
    file.write_text(f'{{"question": "a"}}\n{{"question": "{question}"}}\n', encoding="utf-8")
    with pytest.raises(Failed, match=r"q\.jsonl cannot be used: line 2: the question is empty\.$"):
        read_questions(file)
    file = tmp_path / "q.toml"
    file.write_text(
        f'[[question]]\nquestion = "a"\n[[question]]\nquestion = "{question}"\n', encoding="utf-8"
    )
    with pytest.raises(
        Failed, match=r"q\.toml cannot be used: the question is empty - at `\$\.question\[1\]`"
    ):
        read_questions(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """So is one that is a directory."""
    with pytest.raises(Failed, match=r"none\.toml does not exist") as missing:
        read_questions(tmp_path / "none.toml")
    assert (missing.value.kind, missing.value.exit_code) == ("not_found", 3)
    with pytest.raises(Failed, match=r"cannot be read: Is a directory\.$"):
        read_questions(tmp_path)


def test_a_first_set_asks_for_each_note_in_turn() -> None:
    """By rare words of a line; headings, and lines too short to tell anything, are passed over."""
    made = made_questions(NOTES, 20)
    assert [one.texts[0].path for one in made] == ["MEMORY.md", "memory/kitchen.md", "memory/kitchen.md"]
    assert made_questions(NOTES, 2) == made[:2]
    for one in made:
        [evidence] = one.texts
        lines = NOTES[evidence.path or ""].split("\n")
        assert lines[(evidence.line or 0) - 1].strip() == evidence.text
        assert all(word in evidence.text for word in one.question.split())
    assert made_questions({"a.md": "# a\n\nshort\n"}, 5) == []
    [mixed] = made_questions(
        {"a.md": "- 放秋假（Philharmonie）：从周三到周五，孩子第一周去湖边，第二周在家。"}, 5
    )
    assert mixed.question == "孩子第一周去湖边"


def test_a_question_has_so_many_words() -> None:
    """The rarest of a line, and of Chinese text a piece; a line with fewer words makes none."""
    most = shipped("memd.ctl.commands.evaluate._WORDS_ASKED")
    words = [f"telling{number:02}" for number in range(20)]
    for count, asked in ((most - 1, []), (most, [most]), (20, [most])):
        made = made_questions({"a.md": " ".join(words[:count])}, 5)
        assert [len(one.question.split()) for one in made] == asked
    longest = shipped("memd.ctl.commands.evaluate._CJK_ASKED")
    for count in (longest, longest + 20):
        [made_of_piece] = made_questions(
            {"a.md": "，".join(["水" * count, "短" * 2, "长" * 2, "再" * 10])}, 5
        )
        assert made_of_piece.question == "水" * longest


def test_a_question_has_the_words_that_few_notes_have() -> None:
    """Of the lines of a note, that with the rarest comes first."""
    most = shipped("memd.ctl.commands.evaluate._WORDS_ASKED")
    rare, common = ([f"{word}{number}" for number in range(most)] for word in ("rare", "frequently"))
    notes = {"a.md": "\n".join([" ".join(common), " ".join([*common, *rare])]), "b.md": " ".join(common)}
    first, *others = made_questions(notes, 5)
    assert (first.question, first.texts[0].line) == (" ".join(rare), 2)
    assert [one.question for one in others] == [" ".join(common)] * 2


def test_an_answer_is_looked_for_among_so_many_hits() -> None:
    """No more are asked for, and one in the last place is seen."""
    top = shipped("memd.ctl.commands.evaluate.TOP")

    class Asked:
        def search(self, _: str, *, max_results: int, **__: object) -> object:
            return SimpleNamespace(
                results=[replace(HIT, snippet=f"hit {n}.") for n in range(1, max_results + 1)]
            )

    questions = [EvalQuestion("which?", [f"hit {place}."]) for place in (top, top + 1)]
    [scores] = measured(cast(Client, Asked()), questions, None, "keyword")
    assert scores.seen == 0.5


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home))
        for path, text in NOTES.items():
            daemon.write(path, text)
        with daemon.start(), daemon.client() as client:
            client.sync()
            yield daemon


@pytest.mark.usefixtures("home")
def test_a_first_set_is_made_and_measured(
    daemon: Daemon, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its questions find their lines; a question without evidence counts by itself; each mode has its figures."""

    def said(*argv: str) -> str:
        code = main(["eval", *argv, "--socket", str(daemon.socket)])
        out, err = capfd.readouterr()
        assert (code, err) == (0, "")
        return out

    file = tmp_path / "questions.toml"
    made = said("--make", "20")
    file.write_text(f'{made}\n[[question]]\nquestion = "zxqv PB-977 wibble"\n', encoding="utf-8")
    assert [line.split()[0] for line in said(str(file)).splitlines()[3:6]] == list(MODES)
    by_mode = {one["mode"]: one for one in json.loads(said(str(file), "--json"))["data"]}
    assert list(by_mode) == list(MODES)
    keyword = by_mode["keyword"]
    assert (keyword["questions"], keyword["recall_1"], keyword["seen"], keyword["nothing"]) == (
        3,
        1.0,
        1.0,
        1.0,
    )
    side_by_side = said(str(file), "--mode", "keyword", "--agent", "main", "--beside", "main", "--json")
    one, other = json.loads(side_by_side)["data"]
    assert one | {"ms": 0} == other | {"ms": 0}
    asked = 'question = "copper kettle"\nevidence = ["enamel one"]'
    for path, is_seen in (("memory/**", 1.0), ("!memory/", 0.0)):
        file.write_text(f'[[question]]\n{asked}\npath = ["{path}"]\nsince = "2000-01-01"\n', encoding="utf-8")
        (found,) = json.loads(said(str(file), "--mode", "keyword", "--json"))["data"]
        assert found["seen"] == is_seen
    # Filters have figures of their own where questions differ in them; a question may have several.
    both = [f'[[question]]\n{asked}\npath = ["{path}"]\n' for path in ("memory/**", "!memory/")]
    file.write_text(
        "\n".join(
            [
                *both,
                f'[[question]]\n{asked}\ntags = ["none"]\npath = ["memory/**"]\n',
                f"[[question]]\n{asked}\n",
            ]
        ),
        encoding="utf-8",
    )
    rows = json.loads(said(str(file), "--mode", "keyword", "--json"))["data"]
    assert [(one["filter"], one["questions"], one["seen"]) for one in rows] == [
        (None, 4, 0.5),
        ("no filter", 1, 1.0),
        ("path", 3, 0.3333),
        ("tags", 1, 0.0),
    ]
    printed = said(str(file), "--mode", "keyword").splitlines()
    assert [line.split("  0.")[0].split("  1.")[0].rstrip() for line in printed[3:7]] == [
        "keyword",
        "  no filter",
        "  path",
        "  tags",
    ]
    assert sum(line.startswith("Not seen") for line in printed) == 1
    most = shipped("memd.ctl.commands.evaluate._NOT_SEEN")
    unseen = [f'[[question]]\nquestion = "kettle {n}"\nevidence = ["nowhere {n}"]\n' for n in range(3 * most)]
    file.write_text("\n".join(unseen), encoding="utf-8")
    assert sum("kettle " in line for line in said(str(file), "--mode", "keyword").splitlines()) == most
    assert (
        sum("kettle " in line for line in said(str(file), "--mode", "keyword", "--all").splitlines())
        == 3 * most
    )


@pytest.mark.usefixtures("home")
def test_a_note_whose_name_is_not_utf8_is_left_out_of_a_first_set(
    daemon: Daemon, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is not indexed; the others are asked for, and what is left out is counted."""
    file = Path(os.fsdecode(os.fsencode(daemon.workspace / "memory") + b"/caf\xe9.md"))
    file.write_text("# Coffee\n\n- the espresso machine needs descaling every month\n")
    try:
        code = main(["eval", "--make", "20", "--socket", str(daemon.socket)])
    finally:
        file.unlink()
    out, err = capfd.readouterr()
    assert (code, err) == (0, "1 file left out: name is not UTF-8.\n")
    assert "espresso" not in out
    assert "kettle" in out
