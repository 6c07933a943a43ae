"""Estimates the size of a text in tokens of a model, without its tokenizer; real tokenizers differ by a third either way."""

import re
from functools import cache

# Compiled on first use: classes of so many characters would add 10 ms to each start, and ASCII text needs none.
_compiled = cache(re.compile)

# Cost of a character beyond the quarter of a token that every character costs. Common CJK characters are one
# token; the rarer a block, the more byte pieces a tokenizer needs for it.
_COMMON = "[\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60\U0001f000-\U0001faff]+"
_COMMON_COST = 3
_RARE = (
    (11, "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dbf\u9fa6-\ua4cf\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"),
    (7, "\u02c7\u02ca\u02cb\u02d9\ufe10-\ufe1f\ufe30-\ufe4f\uff61-\uffef"),
    (15, "\U00020000-\U0003ffff"),
)
_ANY_RARE = f"[{''.join(block for _, block in _RARE)}]"


def quarter_tokens(text: str) -> int:
    """Return the estimated size of a text in quarters of a token: a lower bound that adds up over parts.

    An ASCII or Latin character counts 1, a common CJK character or an emoji 4, a rarer one 8 to 16.
    """
    if text.isascii():
        return len(text)
    quarters = len(text) + _COMMON_COST * sum(map(len, _compiled(_COMMON).findall(text)))
    if _compiled(_ANY_RARE).search(text):
        quarters += sum(cost * sum(map(len, _compiled(f"[{block}]+").findall(text))) for cost, block in _RARE)
    return quarters


def estimate_tokens(text: str) -> int:
    """Return the estimated number of tokens: ceil(quarter_tokens / 4)."""
    return -(-quarter_tokens(text) // 4)
