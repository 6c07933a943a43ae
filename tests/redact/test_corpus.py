"""Every kind of secret, in every setting, made apart from the rules."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.corpus import EACH, KEYED, PREFIXED, SHAPED, Sample, samples

_ALL = list(samples(seed=1))


@pytest.mark.parametrize("kind", [*PREFIXED, *(keyed.kind for keyed in KEYED), *SHAPED])
def test_no_secret_survives(kind: str) -> None:
    """Neither as a whole nor its last twelve signs; the lines stay where they were."""
    redactor = Redactor(Redact())
    of_kind = [sample for sample in _ALL if sample.kind == kind]
    assert len(of_kind) >= EACH
    survived: list[tuple[Sample, str]] = []
    for sample in of_kind:
        assert sample.value in sample.text
        redacted = redactor.redact(sample.text)
        assert redacted.text.count("\n") == sample.text.count("\n")
        if sample.value in redacted.text or sample.value[-12:] in redacted.text:
            survived.append((sample, redacted.text))
    assert not survived


def test_the_same_seed_gives_the_same_samples() -> None:
    """And another one others."""
    assert list(samples(seed=1)) == _ALL
    assert {sample.value for sample in samples(seed=2)}.isdisjoint(
        sample.value for sample in _ALL if len(sample.value) > 16
    )
