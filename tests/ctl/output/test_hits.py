"""Hits as text."""

import msgspec
import pytest

from memd.ctl.output import hits
from memd.ctl.output.screen import ansi, uncoloured
from memd_client.messages import Degraded, Found
from tests.ctl.answers import FOUND, HIT


def test_a_hit_is_a_place_a_score_and_its_snippet() -> None:
    """One empty line between two hits; no trailing blanks in a snippet."""
    other = msgspec.structs.replace(
        HIT, path="/srv/docs/a.md", start_line=7, end_line=7, score=1.0, snippet="x\n"
    )
    assert hits.text([HIT, other], uncoloured) == (
        "memory/2026-02-09.md:3-5  0.715\n"
        "    # Retries\n"
        "\n"
        "    three, with jitter\n"
        "\n"
        "/srv/docs/a.md:7-7  1.000\n"
        "    x"
    )


def test_a_score_of_another_engine_is_named() -> None:
    """It is not to be compared with those of memd."""
    other = msgspec.structs.replace(HIT, score=0.0, own_scale=True)
    assert hits.headline(other, uncoloured) == "memory/2026-02-09.md:3-5  0.000 on a scale of its own"


def test_place_and_score_are_set_off_by_colour() -> None:
    """The words of the note are left as they are."""
    assert hits.text([HIT], ansi).startswith(
        "\x1b[36mmemory/2026-02-09.md:3-5\x1b[0m  \x1b[2m0.715\x1b[0m\n    # Re"
    )


def test_a_snippet_cannot_command_the_terminal() -> None:
    """Escape sequences in a note are spelled out."""
    nasty = msgspec.structs.replace(HIT, snippet="\x1b[2Jgone")
    assert "\x1b" not in hits.text([nasty], uncoloured)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (FOUND, ()),
        (Found(), ("No hits.",)),
        (
            Found(scope_denied=True),
            (
                "This session may not search this agent's memory: the scope rules of the configuration deny it.",
            ),
        ),
        (
            Found(
                results=[HIT],
                stale=True,
                degraded=[Degraded(part="query_embedding", reason="timed out\nafter 2 s")],
            ),
            (
                "Note: something written just now is not in these results yet; query embedding: timed out; after 2 s.",
            ),
        ),
        (
            Found(degraded=[Degraded(part="vector", reason="no model")]),
            ("No hits.", "Note: vector: no model."),
        ),
        (
            Found(results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="not installed"),
            ("Note: builtin answered instead of qmd: not installed.",),
        ),
        (
            Found(
                results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="It is gone. Install it."
            ),
            ("Note: builtin answered instead of qmd: It is gone. Install it.",),
        ),
        (
            Found(results=[HIT], fallback=True, fallback_from="qmd", fallback_reason="Is it there?"),
            ("Note: builtin answered instead of qmd: Is it there?",),
        ),
        (
            Found(
                results=[HIT],
                backend="builtin",
                provider="local",
                fallback=True,
                fallback_from="voyage",
                fallback_reason="the key was not accepted",
            ),
            ("Note: local answered instead of voyage: the key was not accepted.",),
        ),
    ],
)
def test_what_is_missing_is_remarked(found: Found, said: tuple[str, ...]) -> None:
    """In one line, whatever is degraded."""
    assert hits.notes(found) == said
