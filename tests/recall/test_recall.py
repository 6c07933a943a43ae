from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from memd.text.tokens import is_mostly_cjk
from tests.daemon.process import Daemon
from tests.recall.__main__ import measured, table, written
from tests.recall.pairs import pairs
from tests.recall.texts import notes, questions, transcript
from tests.training.pairs import read

# Of each kind the least that one figure may fall to: only a large fall fails.
FLOORS = {
    "other words": ("hit@6", 0.75),
    "other language": ("hit@6", 0.75),
    "updates": ("newest first", 0.85),
    "copies": ("once", 0.9),
    "identifiers": ("hit@1", 0.98),
    "time": ("hit@3", 0.95),
    "unanswerable": ("weak or none", 0.9),
    "tags": ("hit@3", 0.95),
    "sessions": ("hit@3", 0.95),
    "mixed lines": ("hit@6", 0.9),
    "negations": ("hit@6", 0.8),
    "short notes": ("hit@3", 0.85),
    "a long note": ("hit@3", 0.95),
}


def test_each_question_has_its_evidence_and_none_twice_but_copies() -> None:
    """Else a figure would tell of the texts, and not of the search."""
    texts = [*notes().values(), transcript().replace("\\n", "\n")]
    asked = list(questions())
    assert len({(one.kind, one.text, one.now, one.tags) for one in asked}) == len(asked)
    copied = {one.evidence for one in asked if one.kind == "copies"}
    for one in asked:
        held = sum(text.count(one.evidence) for text in texts) if one.evidence else 0
        assert held == (2 if one.evidence in copied else int(bool(one.evidence))), one
        assert any(one.not_first in text for text in texts)
    assert Counter(one.kind for one in asked).keys() == FLOORS.keys()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_kind_of_question_falls_far() -> None:
    """With the bundled model."""
    with TemporaryDirectory(prefix="memd-") as home:
        daemon = Daemon(Path(home), real_model=True)
        written(daemon)
        # Its chunks take minutes to embed beside other tests: the command measures it.
        (daemon.workspace / "memory" / "counted.md").unlink()
        with daemon, daemon.client(timeout=800) as client:
            while client.sync().vectors != "complete":
                pass
            reached = table(list(measured(client)))
    measured_here = FLOORS.items() - {("a long note", FLOORS["a long note"])}
    fallen = {kind: reached[kind] for kind, (name, least) in measured_here if reached[kind][name] < least}
    assert not fallen


def test_the_pairs_are_not_trained_on_and_stand_once() -> None:
    """A note that the model has seen would be found for another reason."""
    found = pairs()
    assert len(found) == 480
    assert len({text for pair in found for text in (pair.note, pair.near)}) == 960
    trained, kept_back = read()
    assert not {pair.note for pair in found} & {pair.note for pair in (*trained, *kept_back)}
    assert all(is_mostly_cjk(pair.para) != is_mostly_cjk(pair.cross) for pair in found)
