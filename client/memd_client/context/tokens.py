"""How many tokens a text is, estimated without a tokenizer.

The figures are those that the daemon cuts notes by: four ASCII or Latin characters a token, one common CJK character
or emoji a token, and two to four tokens for rarer ones. Real tokenizers differ by a third either way.
"""

import re
from collections.abc import Iterable

# What a character costs beyond the quarter of a token that every character costs.
_COMMON = re.compile("[\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60\U0001f000-\U0001faff]+")
_COMMON_COST = 3
_RARE = (
    (11, "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dbf\u9fa6-\ua4cf\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"),
    (7, "\u02c7\u02ca\u02cb\u02d9\ufe10-\ufe1f\ufe30-\ufe4f\uff61-\uffef"),
    (15, "\U00020000-\U0003ffff"),
)
_RARE_COSTS = tuple((cost, re.compile(f"[{block}]+")) for cost, block in _RARE)
_ANY_RARE = re.compile(f"[{''.join(block for _, block in _RARE)}]")


def quarter_tokens(text: str) -> int:
    """The estimated size of a text in quarters of a token; it adds up over parts, and is the length of ASCII text."""
    if text.isascii():
        return len(text)
    quarters = len(text) + _COMMON_COST * sum(map(len, _COMMON.findall(text)))
    if _ANY_RARE.search(text):
        quarters += sum(cost * sum(map(len, block.findall(text))) for cost, block in _RARE_COSTS)
    return quarters


def estimate_tokens(text: str) -> int:
    """The estimated number of tokens of a text: ceil(quarter_tokens / 4)."""
    return -(-quarter_tokens(text) // 4)


def estimate_all(texts: Iterable[str]) -> int:
    """The estimated number of tokens of several texts together."""
    return -(-sum(map(quarter_tokens, texts)) // 4)
