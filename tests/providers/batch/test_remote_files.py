"""Files that jobs leave at a provider, by what it says of them."""

from collections.abc import Sequence
from typing import cast

import pytest

from memd.domain_types import BatchFile
from memd.providers.batch.client import BatchTimeouts
from memd.providers.batch.ledger import Ledger
from memd.providers.batch.remote_files import RemoteFiles
from memd.providers.remote.dialect import HttpAnswer
from tests.providers.batch.scripted import answer, scripted_client

GONE, REFUSED, BROKEN = answer({}, 404), answer({}, 400), answer({}, 500)
SOUGHT = BatchFile("job.jsonl", "job", is_sought=True)
NAMED = BatchFile("file-1", "job")


class Files:
    """A ledger that has files of jobs that have ended."""

    def __init__(self, *files: BatchFile) -> None:
        self.kept = list(files)

    async def forget_old(self) -> None:
        pass

    async def jobs(self) -> Sequence[object]:
        return []

    async def files(self) -> Sequence[BatchFile]:
        return list(self.kept)

    async def drop_file(self, file: str) -> None:
        self.kept = [one for one in self.kept if one.name != file]


@pytest.mark.parametrize(
    ("file", "deletion", "listed", "pages", "left"),
    [
        (NAMED, answer({}), [], 1, 0),
        (NAMED, GONE, [], 1, 0),
        (NAMED, BROKEN, [], 1, 1),
        (NAMED, REFUSED, [], 1, 0),  # some refuse to delete what does not exist
        (NAMED, REFUSED, ["file-1"], 1, 1),
        (NAMED, REFUSED, [], 99, 1),  # it may be on a page that is not looked at
        (SOUGHT, answer({}), [], 1, 0),
        (SOUGHT, answer({}), ["file-7"], 1, 0),
        (SOUGHT, GONE, ["file-7", "file-8"], 1, 0),
        (SOUGHT, BROKEN, ["file-7"], 1, 1),
        (SOUGHT, answer({}), ["file-7"], 99, 1),
    ],
)
async def test_a_file_is_left_until_it_is_known_to_be_gone(
    file: BatchFile, deletion: HttpAnswer, listed: Sequence[str], pages: int, left: int
) -> None:
    """By its deletion, or by a complete list; one whose name is not known by the name under which it was uploaded."""

    def reply(what: str) -> HttpAnswer:
        if what.startswith("DELETE"):
            return deletion
        files = [{"id": name, "filename": "job.jsonl"} for name in listed]
        others = [{"id": f"other-{len(connections.asked)}", "filename": "other.jsonl"}]
        return answer({"data": files + others, "has_more": len(connections.asked) < pages})

    client, connections = scripted_client(reply, BatchTimeouts())
    ledger = Files(file)
    files = RemoteFiles(client, cast("Ledger", ledger))
    await files.load()
    assert await files.clear_left() is not bool(left)
    assert (files.left, len(ledger.kept)) == (left, left)
    deleted = [what for _, what in connections.asked if what.startswith("DELETE")]
    assert deleted == [f"DELETE files/{name}" for name in (listed if file.is_sought else ["file-1"])]
