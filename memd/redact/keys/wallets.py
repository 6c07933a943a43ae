"""Finds secrets of wallets: mnemonic phrases in any language of BIP-39, and private keys."""

import base64
import binascii
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import groupby

from memd.redact.rule import Covered, Nearby, Rule, Span, matching, sought, within_reach
from memd.redact.values import randomness
from memd.redact.words.bip39 import languages, numbers_of, words_of

_LABEL = re.compile(
    r"""(?:seed[ _-]?(?:phrase|words?)|recovery[ _-]?(?:phrase|words?)|(?<![\w./-])(?:wallet[ ])?seed(?=[ ]?(?:[:：]|is|=))|(?:wallet|metamask|ledger|trezor|12|24|twelve)[ ](?:words|phrase)|(?:(?<=secret[ ])|(?<=backup[ ]))phrase|bip-?39|(?:wallet|ledger|trezor)[ ]backup|mnemonic(?:[ _-]?(?:phrase|words?|seed))?|frase[ ](?:de[ ](?:recuperación|recuperação)|di[ ]recupero|semilla)|phrase[ ]de[ ]récupération|wiederherstellungsphrase|сид-фраза|фраза[ ]восстановления|мнемоническая[ ]фраза|(?:시드|복구)[ ]?구문|니모닉|シードフレーズ|リカバリーフレーズ|ニーモニック
    |(?:助记词|助記詞|恢复短语|种子短语)(?:[一-鿿]{1,6}(?=[:：]))?)
    (?:[ ](?:for|of|to|de|del|der|für|di|do|da|en|от|для)(?:(?:[ ][\w'-]{1,20}){1,5}?(?=[ ]?[:：=]|[ ](?:is|are)[ ])|[ ][\w'-]{1,20}))?(?:,[ ]in[ ](?:the[ ])?(?:right[ ])?order|[ ](?:so|in[ ]case|before|because|just)[ ][^\n:]{1,48}(?=:))?
    [ ]{0,2}(?:[(（][^()（）\n]{1,24}[)）])?\\{0,7}["'`*]{0,3}(?:[ ]{0,2}(?:is|are|was|是|为|[:：=＝]|=>|->|[-–—](?=[ ])))?(?:[ ]?[:：])?[ \t\n*>]{0,6}\\{0,7}["'“「`]?(?:\\n)?""",
    re.VERBOSE | re.IGNORECASE,
)
# The English words of BIP-39 have three to eight letters. They may be numbered.
_WORDS = re.compile(
    r"(?:(?:[0-9]{1,2}[.)、:]?[ \t]{0,2})?[a-z]{3,8}(?![A-Za-z'’])[ \t]{0,6}+(?:[,，\n][ \t]{0,3}+)?){11,32}",
    re.IGNORECASE,
)
# Words of sentences that are not in the list.
_SENTENCE = re.compile(
    r"\b(?:the|and|for|with|from|are|was|were|has|have|had|not|but|his|her|its|their|they|which|who|should|would|could|never|please|does|been)\b",
    re.IGNORECASE,
)
_COUNTS = (24, 21, 18, 15, 12)  # words of a phrase
_WORDS_CHARS = 720  # behind an anchor, in which the words of a phrase are searched
# Letters with combining marks, as in the lists.
_WORD = re.compile(r"(?:[^\W\d_][\u0300-\u036f\u3099\u309a]{0,2}){1,11}+")
_BETWEEN = r"[\s,，、;|*>`\"'-]{1,12}+(?:[0-9]{1,2}[.)、:：]?[ \t]{0,2})?"
_RUN = re.compile(rf"{_WORD.pattern}(?:{_BETWEEN}{_WORD.pattern}){{11,}}+")
# The same of words that the English list may have: a sentence seldom has twelve of three to eight letters in a row.
_ENGLISH_WORD = r"[A-Za-z]{3,8}+(?![^\W\d_])"
_ENGLISH_RUN = re.compile(rf"(?<![^\W\d_]){_ENGLISH_WORD}(?:{_BETWEEN}{_ENGLISH_WORD}){{11,}}+")
_HAN_WORDS = re.compile(r"(?:[一-鿿][ 　、，,]{1,2}){11,23}[一-鿿](?![一-鿿])")


def _is_valid(numbers: Sequence[int]) -> bool:
    """Return whether a phrase of words with these places in their list ends with its checksum (BIP-39)."""
    bits = 0
    for number in numbers:
        bits = bits << 11 | number
    count = len(numbers) // 3  # bits of the checksum
    drawn, checksum = bits >> count, bits & (1 << count) - 1
    return sha256(drawn.to_bytes(4 * count, "big")).digest()[0] >> (8 - count) == checksum


def _phrases(text: str, places: Sequence[int], _: Covered) -> Iterator[Span]:
    """Yield twelve words or more behind a label, and phrases with a valid checksum near an anchor."""
    after = 0
    labelled: list[int] = []
    for at in places:
        label = _LABEL.match(text, at)
        if label is not None:
            labelled.append(at)
        span = None if label is None or at < after else _behind_label(text, label)
        if span is not None:
            yield span
            after = span[1]
    for start, end in within_reach(places, 0, _WORDS_CHARS):
        first = bisect_left(labelled, start - _WORDS_CHARS)
        is_labelled = first < len(labelled) and labelled[first] <= end
        for found in (_RUN if is_labelled else _ENGLISH_RUN).finditer(text, start, end):
            last = bisect_right(labelled, found.start()) - 1
            is_called = last >= 0 and labelled[last] + _WORDS_CHARS >= found.start()
            yield from _checked(text, found.span(), languages() if is_called else ("english",))


def _behind_label(text: str, label: re.Match[str]) -> Span | None:
    """Return twelve words or more directly behind a label, whether they are in a list or not."""
    words = _WORDS.match(text, label.end())
    if words is None:
        return _of_another_language(text, label)
    said = _of_whole_lines(words[0].rstrip(" \t\n,，"))
    count = len(_LETTERS.findall(said))
    if count < 12:
        return _of_another_language(text, label)
    if _SENTENCE.search(said):
        return None
    return words.start(), words.start() + len(said)


_LETTERS = re.compile("[A-Za-z]{3,8}")


def _of_whole_lines(said: str) -> str:
    """Return words without those of the lines behind a phrase: all up to a line end, where so many are a phrase and all are none."""
    whole = said
    while len(_LETTERS.findall(whole)) not in _COUNTS and "\n" in whole:
        whole = whole.rpartition("\n")[0].rstrip(" \t,，")
    return whole if len(_LETTERS.findall(whole)) in _COUNTS else said


# Twelve words or more of any language, behind a label and a colon, to the end of the line.
_ANY_WORDS = re.compile(r"[^\W\d_]{1,12}(?:[ ][^\W\d_]{1,12}){11,24}(?=[ ]{0,4}(?:\n|\Z))")


def _of_another_language(text: str, label: re.Match[str]) -> Span | None:
    """Return words of another language than English, all in small letters and each once, as no sentence has them."""
    words = _ANY_WORDS.match(text, label.end()) if label[0].rstrip().endswith((":", "：")) else None
    if words is None or words[0] != words[0].lower() or len(set(words[0].split())) <= words[0].count(" "):
        return None
    return None if _SENTENCE.search(words[0]) else words.span()


def _checked(text: str, run: Span, languages: Sequence[str]) -> Iterator[Span]:
    """Yield consecutive words of one list whose checksum is valid.

    Other languages than English are tried only if the text clearly mentions a phrase: a list of 2,048 words takes 200 KB.
    """
    words = list(_WORD.finditer(text, *run))
    for language in languages:
        known = words_of(language)
        for is_known, some in groupby(words, lambda word: _plain(word) in known):  # noqa: B023 - used at once
            span = _valid_part(tuple(some), language) if is_known else None
            if span is not None:
                yield span
                return


def _plain(word: re.Match[str]) -> str:
    """Return a word in the normal form of the lists."""
    said = word[0].lower()
    return said if said.isascii() else unicodedata.normalize("NFKD", said)


def _valid_part(run: Sequence[re.Match[str]], language: str) -> Span | None:
    """Return the longest valid phrase among consecutive words."""
    known = numbers_of(language)
    numbers = [known[_plain(word)] for word in run]
    for count in _COUNTS:
        for first in range(len(run) - count + 1):
            if _is_valid(numbers[first : first + count]):
                return run[first].start(), run[first + count - 1].end()
    return None


_STELLAR = re.compile(r"(?<![A-Z0-9])S[A-Z2-7]{55}(?![A-Z0-9])")
_STELLAR_SEED = 0x90  # the first byte
_STELLAR_CHARS = 200  # around an anchor


def _is_stellar(said: str) -> bool:
    """Return whether a text is a Stellar seed: its last two bytes are the CRC of the others (SEP-23)."""
    raw = base64.b32decode(said)
    return raw[0] == _STELLAR_SEED and binascii.crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "little")


# 64 bytes: the seed and the public key.
_BYTES = re.compile(
    r"\[\s{0,4}(?P<secret>(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2}),\s{0,4}){63}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2}))\s{0,4}\]"
)
_BYTES_CHARS = 300


_OF_ACCOUNTS = matching(
    r"accounts[\"']?[ ]?[:=][ ]?\[\s{0,40}(?P<secret>[\"'](?:0x)?[0-9a-f]{64}[\"'](?:,\s{0,40}[\"'](?:0x)?[0-9a-f]{64}[\"']){0,20})",
    re.IGNORECASE,
)

# A numbered list of twelve words, nearly all of which wallets draw from, whatever stands around it.
_TWELFTH = re.compile(
    r"(?<![0-9])1[.)][ ]{0,2}[a-z]{3,8}\s{1,4}(?:(?:[2-9]|1[0-9]|2[0-4])[.)][ ]{0,2}[a-z]{3,8}\s{1,4}){10}12[.)][ ]{0,2}[a-z]{3,8}(?:\s{1,4}(?:1[3-9]|2[0-4])[.)][ ]{0,2}[a-z]{3,8}){0,12}(?![a-z])",
    re.IGNORECASE,
)
_CHARS_OF_LIST = 190  # of eleven numbered words


def _numbered(text: str, at: int) -> Span | None:
    left = max(0, at - _CHARS_OF_LIST)
    for match in _TWELFTH.finditer(text, left, at + _CHARS_OF_LIST + 20):
        words = _LETTERS.findall(match[0].lower())
        if match.start() <= at < match.end() and 4 * len(words_of("english").intersection(words)) >= 3 * len(
            words
        ):
            return match.span()
    return None


_SPEAKS_OF_PHRASE = (
    "seed", "wallet", "words", "recovery", "mnemonic", "phrase", "metamask", "ledger", "trezor", "bip39", "bip-39",
    "助记词", "助記詞", "恢复短语", "种子短语", "钱包", "錢包",
    "wiederherstellungsphrase", "frase de recuper", "frase di recupero", "frase semilla", "сид-фраза", "фраза восстановления", "мнемоническая фраза", "시드 구문", "시드구문", "복구 구문", "복구구문", "니모닉", "シードフレーズ", "リカバリーフレーズ", "ニーモニック",
)  # fmt: skip


# --- "paper wallet sweeps with K2wshus...": the form of a private key of Bitcoin

_OF_BITCOIN = re.compile(
    r"(?<![A-Za-z0-9])(?P<secret>[KL][1-9A-HJ-NP-Za-km-z]{51}|5[1-9A-HJ-NP-Za-km-z]{50})(?![A-Za-z0-9])"
)


def _of_bitcoin(text: str, at: int) -> Span | None:
    match = _OF_BITCOIN.search(text, max(0, at - 120), at + 220)
    is_one = match is not None and randomness.mixes(match["secret"])
    return match.span("secret") if match is not None and is_one else None


# --- "write it on paper ok? talent parade ladder ...": a row of as many words as a wallet has, all of which it may draw

_ROW_OF_WORDS = re.compile(
    r"(?<![\w'’-])(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?=[.!]?[\"'”)]?[ \t]{0,4}(?:\n|\Z))"
)
_LENGTHS = frozenset({12, 15, 18, 21, 24})


def _of_wallet(text: str, at: int) -> Span | None:
    for match in _ROW_OF_WORDS.finditer(text, max(0, at - 220), at + 330):
        words = match["secret"].split(" ")
        if len(words) in _LENGTHS and len(set(words)) == len(words) and words_of("english").issuperset(words):
            return match.span("secret")
    return None


RULES = (
    Rule("seed-phrase", "seed-phrase", _SPEAKS_OF_PHRASE, walk=_phrases),
    Rule("seed-phrase-numbered", "seed-phrase", ("12. ", "12) ", "12."), _numbered),
    Rule(
        "seed-phrase-han",
        "seed-phrase",
        ("助记词", "助記詞", "恢复短语", "种子短语"),
        walk=sought(_HAN_WORDS, behind=_WORDS_CHARS, width=80),
    ),
    Rule(
        "stellar-seed",
        "wallet-key",
        ("stellar", "xlm", "lumens"),
        walk=sought(
            _STELLAR, before=_STELLAR_CHARS, behind=_STELLAR_CHARS - 56, width=56, is_one=_is_stellar
        ),
    ),
    Rule(
        "solana-key",
        "wallet-key",
        ("solana", "keypair", "secretkey", "secret_key", "id.json"),
        walk=sought(_BYTES, behind=_BYTES_CHARS, width=540),
    ),
    Rule("ethereum-accounts", "wallet-key", ("accounts",), _OF_ACCOUNTS),
)
"""Words, where a wallet is spoken of; and keys that have no beginning of their own."""
KEYS_AND_WORDS_ALONE = (
    Rule("bitcoin-key", "wallet-key", ("wallet", "sweep", "bitcoin", "btc", "wif ", "wif)", "wif:", "private key", "privkey", "钱包", "私钥"), _of_bitcoin, needs=Nearby(re.compile("[KL5][1-9A-HJ-NP-Za-km-z]{50}"), 120, 160, 51)),
    Rule("wallet-words-alone", "seed-phrase", ("write it on", "write it down", "write them", "write these", "write this", "on paper", "backup", "back up", "metal plate", "offline", "cold storage", "restore", "safe place", "抄下", "抄在", "备份", "保管"), _of_wallet, needs=Nearby(re.compile("(?<![a-z])(?:[a-z]{3,8}+[ ]){11}[a-z]{3}"), 220, 220, 108)),
)  # fmt: skip
"""What has the form of a key or a phrase, where no wallet is named."""
