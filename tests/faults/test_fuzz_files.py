"""Any bytes in a workspace, or where transcripts are: the index is that of a fresh start, and the rest is found."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.awkward import markdown, transcripts
from tests.awkward.streams import pieces
from tests.faults.house import House, few, housed

_NAMES = st.sampled_from(["a.md", "b.md", "2026-02-09.md", "日记.md", "a b.MD"]).map(
    lambda name: f"workspace/memory/{name}"
)
_NOTES = st.dictionaries(_NAMES | st.just("workspace/MEMORY.md"), markdown.FILES, max_size=3)
_CHATS = st.dictionaries(
    st.sampled_from(["chats/a.jsonl", "chats/b.jsonl", "chats/c.jsonl"]), transcripts.FILES, max_size=2
)
_PACKED = st.dictionaries(
    st.sampled_from(["chats/b.jsonl.zst", "chats/d.jsonl.zst"]), transcripts.PACKED, max_size=1
)

_CHANGES = st.sampled_from(["nothing", "nothing", "cut", "replace", "remove"])


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """One for all tests of this module."""
    with housed() as one:
        yield one


@few
@given(before=_NOTES, after=_NOTES, data=st.data())
def test_any_notes_become_a_fresh_index(
    house: House, before: dict[str, bytes], after: dict[str, bytes], data: st.DataObject
) -> None:
    """Written, written over, with some gone in between: nothing is left of what was, and nothing raises."""
    house.empty()
    house.write(before)
    house.sync()
    for path in data.draw(st.lists(st.sampled_from(sorted(before)), unique=True)) if before else ():
        (house.home / path).unlink()
    house.write(after)
    house.sync()
    house.compare()


@pytest.mark.long
@few
@given(chats=_CHATS, packed=_PACKED, data=st.data())
def test_any_transcripts_become_a_fresh_index(
    house: House, chats: dict[str, bytes], packed: dict[str, bytes], data: st.DataObject
) -> None:
    """Written piece by piece, some compressed, replaced or taken away: read on or read at once, the turns are the same."""
    house.empty()
    house.write(packed)
    for path, content in chats.items():
        for piece in data.draw(pieces(content, most=2)):
            with (house.home / path).open("ab") as file:
                file.write(piece)
            house.sync()
    house.sync()
    # What is compressed may be damaged, and then what the plain file of its session said stays known.
    loose = min((path for path in chats if f"{path}.zst" not in packed), default=None)
    change = data.draw(_CHANGES) if loose else "nothing"
    last = house.home / str(loose)
    if change == "cut":
        last.write_bytes(last.read_bytes()[: data.draw(st.integers(0, last.stat().st_size))])
    elif change == "replace":
        last.write_bytes(data.draw(transcripts.FILES))
    elif change == "remove":
        last.unlink()
    house.sync()
    house.compare()
