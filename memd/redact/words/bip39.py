"""The lists of words that wallets draw their phrases from (BIP-39), each read when it is first needed."""

from collections.abc import Mapping
from functools import cache


@cache
def numbers_of(language: str) -> Mapping[str, int]:
    """Return the words of a language, each with its place in the list."""
    from mnemonic import Mnemonic  # noqa: PLC0415 - 60 ms, which few texts need

    return {word: number for number, word in enumerate(Mnemonic(language).wordlist)}


@cache
def words_of(language: str) -> frozenset[str]:
    """Return the words of a language."""
    return frozenset(numbers_of(language))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages of the lists, English first."""
    from mnemonic import Mnemonic  # noqa: PLC0415 - as above

    return ("english", *sorted({*Mnemonic.list_languages()} - {"english"}))
