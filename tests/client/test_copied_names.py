"""From the name of a copy to that of its original."""

import time

import pytest

from memd_client.copied_names import original_name
from tests.bounds import shipped

COPIES = """
MEMORY.sync-conflict-20261123-161318-BTMRC5A.md
MEMORY.sync-conflict-20261123-161318.md
MEMORY~20261123-161318.md
MEMORY (ann's conflicted copy 2026-11-29).md
MEMORY (Ann (work)'s conflicted copy 2026-11-29 (1)).md
MEMORY (ann :)'s conflicted copy 2026-11-29).md
MEMORY (Case Conflict 1).md
MEMORY (Conflicted copy ann 202611291010).md
MEMORY (conflicted copy 2026-11-29 101010).md
MEMORY_conflict-20261129-101010.md
MEMORY.conflicted copy 2026-11-29.md
MEMORY (SFConflict ann@example.com 2026-11-29-10-10-10).md
MEMORY_nas_Nov-29-101010-2026_Conflict.md
MEMORY-DESKTOP-AB12CD3.md
MEMORY [conflicted].md
MEMORY 2.md
MEMORY copy.md
MEMORY copy 2.md
MEMORY (copy).md
MEMORY (3rd copy).md
MEMORY (another copy).md
MEMORY - Copy.md
MEMORY - Copy (2).md
MEMORY (1).md
MEMORY(1).md
Copy of MEMORY.md
Copy (2) of MEMORY.md
Kopie von MEMORY.md
MEMORY - Kopie (2).md
MEMORY (In Konflikt stehende Kopie von Ann 2026-11-29).md
MEMORY (Copie en conflit de Ann 2026-11-29).md
MEMORY - copia.md
MEMORY — копия.md
MEMORY副本.md
MEMORY 的副本.md
MEMORY - 副本 (2).md
MEMORY（副本）.md
MEMORY（另一个副本）.md
MEMORY (ann 的冲突副本 2026-11-29).md
复件 (2) MEMORY.md
MEMORY のコピー.md
MEMORY 복사본.md
MEMORY_BACKUP_12345.md
MEMORY.bak.md
MEMORY-backup-2026-11-29.md
MEMORY.orig.md
MEMORY~.md
MEMORY.md.md
Copy of MEMORY - Copy (2) (1).md
""".strip().splitlines()

OTHERS = """
MEMORY.md
2026-02-09.md
memory-notes.md
memory-2.md
memory 2026.md
memory conflicts.md
user conflict resolution.md
memory (cards).md
memory-copywriting.md
memory_summary.md
copy.md
(copy).md
副本.md
old.md
.md
MEMORY (copy).txt
MEMORY.orig
""".strip().splitlines()


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_the_name_of_its_original(name: str) -> None:
    """In any case of letters, and of a copy of the copy as well."""
    assert original_name(name) == "MEMORY.md"
    assert original_name(name.lower()) == "memory.md"
    assert original_name(name.upper()) == "MEMORY.MD"
    assert original_name(f"{name[:-3]}.sync-conflict-20261123-161318-BTMRC5A.md") == "MEMORY.md"


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_copy_keeps_its_name(name: str) -> None:
    """A name that only has such a word, and what is no Markdown."""
    assert original_name(name) == name


@pytest.mark.parametrize(
    "part", ["(", ")", " ", "conflict.", ". - ", "副本", "a 1", " 1", " copy 1", "[(（", "(copy", "_a", "1"]
)
def test_the_longest_name_takes_no_time(part: str) -> None:
    """A file may have any name, and each scan looks at it."""
    longest = int(shipped("memd_client.copied_names._LONGEST"))
    name = f"{part * longest}"[: longest - 3] + ".md"
    began = time.perf_counter()
    original_name(name)
    assert time.perf_counter() - began < 0.2
    # A request may have a longer one, which no file has.
    assert original_name(f"{'a' * longest} 2.md") == f"{'a' * longest} 2.md"
