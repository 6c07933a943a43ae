"""Finds the parts of a text that are so full of labels with secrets that they are taken out as one.

One of the words that rules begin at in each 32 characters, for 65,536 characters and more, with secrets behind them, is nothing that a
person wrote, and no list of logins that anybody needs without its passwords. To judge each value of such a part takes up to five seconds for a megabyte.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from memd.redact.rule import Span

_WINDOW = 1_024  # characters in which labels are counted
_LEAST_LABELS = 32  # of a window; a long label may count twice, once for each rule that begins in it
_LEAST_WINDOWS = 64  # one after another; what is shorter takes a third of a second at most
_STEP, _LEAST_SECRETS = 512, 16  # characters of a step of the sample, and secrets that begin in each
SAMPLE_CHARS = 4_096
"""Characters at the beginning of a part, and before its end, whose secrets decide whether it is taken out."""
KEPT_CHARS = 1_024
"""Characters at the end of a part that are judged value by value, since the last label may have its value behind the part."""


def parts_full_of_labels(places: Iterable[Sequence[int]], length: int) -> Iterator[Span]:
    """Yield the parts of a text in which labels are that frequent throughout, in order.

    Args:
        places: The offsets of each label.
        length: Characters of the text.
    """
    if length < _WINDOW * _LEAST_WINDOWS:
        return
    counts = Counter(at // _WINDOW for offsets in places for at in offsets)
    full = [window for window, count in sorted(counts.items()) if count >= _LEAST_LABELS]
    begins = [number for number, (last, window) in enumerate(pairwise([-2, *full])) if window != last + 1]
    for begin, end in pairwise([*begins, len(full)]):
        if end - begin >= _LEAST_WINDOWS:
            yield full[begin] * _WINDOW, min(length, (full[end - 1] + 1) * _WINDOW)


def is_full_of_secrets(begins: Sequence[int]) -> bool:
    """Return whether enough secrets begin in each step of a sample.

    Args:
        begins: The ascending offsets of the secrets in the sample.
    """
    steps = range(0, SAMPLE_CHARS, _STEP)
    return all(
        bisect_left(begins, step + _STEP) - bisect_left(begins, step) >= _LEAST_SECRETS for step in steps
    )
