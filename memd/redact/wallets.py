"""Seed phrases of wallets: twelve words or more next to a word that says what they are."""

import re

from memd.redact.rule import Rule, Span

_LABEL = re.compile(
    r"""(?:seed[ _-]?(?:phrase|words?)|recovery[ _-]?(?:phrase|words?)|(?<=[ ])(?:wallet[ ])?seed(?=[ ]?(?:[:：]|is|=))|(?:wallet|metamask|ledger|trezor|12|24|twelve)[ ](?:words|phrase)|(?:(?<=secret[ ])|(?<=backup[ ]))phrase|mnemonic(?:[ _-]?(?:phrase|words?|seed))?|助记词|助記詞|恢复短语|种子短语)
    (?:[ ](?:for|of|to)(?:[ ][\w'-]{1,20}){1,4}?)?(?:,[ ]in[ ](?:the[ ])?(?:right[ ])?order)?
    [ ]{0,2}(?:[(（][^()（）\n]{1,24}[)）])?\\{0,7}["'`*]{0,3}(?:[ ]{0,2}(?:is|are|was|是|为|[:：=＝]|=>|->))?(?:[ ]?[:：])?[ \t\n*>]{0,6}\\{0,7}["'“「`]?(?:\\n)?""",
    re.VERBOSE | re.IGNORECASE,
)
# The words of BIP-39 have three to eight letters. They may be numbered.
_WORDS = re.compile(
    r"(?:(?:[0-9]{1,2}[.)、:]?[ \t]{0,2})?[a-z]{3,8}(?![A-Za-z'’])[ \t]{0,6}+(?:[,，\n][ \t]{0,3}+)?){11,32}",
    re.IGNORECASE,
)
# Words of sentences that are none of the list.
_SENTENCE = re.compile(
    r"\b(?:the|and|for|with|from|are|was|were|has|have|had|not|but|his|her|its|their|they|which|who|should|would|could|never|please|does|been)\b",
    re.IGNORECASE,
)


def _phrase(text: str, at: int) -> Span | None:
    label = _LABEL.match(text, at)
    words = None if label is None else _WORDS.match(text, label.end())
    if words is None:
        return None
    said = words[0].rstrip(" \t\n,，")
    count = len(re.findall(r"[A-Za-z]{3,8}", said))
    if count < 12 or _SENTENCE.search(said):
        return None
    return words.start(), words.start() + len(said)


RULES = (
    Rule(
        "seed-phrase",
        "seed-phrase",
        (
            "seed",
            "wallet",
            "words",
            "recovery",
            "mnemonic",
            "phrase",
            "助记词",
            "助記詞",
            "恢复短语",
            "种子短语",
        ),
        _phrase,
    ),
)
"""One rule: words alone are never a secret."""
