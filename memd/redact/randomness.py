"""Tells letters drawn by chance from words, by the pairs of letters that words are made of."""

import re

# The pairs of letters that names in programs, words of English and Chinese syllables are mostly made of. Of letters drawn
# by chance about one pair in four is among them, of words three in four.
_USUAL = frozenset(
    re.findall(
        r"\S+",
        """
    ab ac ad ag ai al am an ap ar as at au av ay ba be bi bl bo br bu by ca ce ch ci ck cl co cr ct cu da de di do
    dr du ea ec ed ee ef eg ei el em en ep er es et ev ex ey fa fe ff fi fo fr fu ga ge gh gi gl go gr gu ha he hi
    ho hr ht hu ia ib ic id ie if ig il im in io ip ir is it iv ja jo ju ke ki ko ku la ld le li ll lo ls lt lu ly
    ma mb me mi mm mo mp ms mu my na nc nd ne nf ng ni nk nn no ns nt nu oa ob oc od oe of og oi ok ol om on oo op
    or os ot ou ov ow pa pe ph pi pl po pp pr ps pt pu qu ra rc rd re rg ri rk rl rm rn ro rr rs rt ru ry sa sc se
    sh si sk sl so sp sq ss st su sw ta te th ti tl to tr ts tt tu tw ty ub uc ud ue ug ui ul um un up ur us ut va
    ve vi vo wa we wh wi wo wr xi xp xt ye yi yo ys za ze zh zi
    """,
    )
)
_LEAST = 11  # letters: of fewer, a rare word may look like chance


def is_jumble(text: str) -> bool:
    """Whether a text of small letters alone is no word and no words put together."""
    if (
        len(text) < _LEAST
        or len(text) > 200
        or not text.isascii()
        or not text.isalpha()
        or not text.islower()
    ):
        return False
    usual = sum(text[at : at + 2] in _USUAL for at in range(len(text) - 1))
    return usual / (len(text) - 1) < 0.6
