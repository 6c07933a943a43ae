"""Loads secret_words.toml: the words for secrets in all languages, and the words that stand around secrets."""

import re
import tomllib
from collections.abc import Collection, Sequence
from importlib import resources
from itertools import count

import msgspec


class CodeWord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A word for codes, with regular expressions for the text before and behind it."""

    anchor: str
    before: str = ""
    after: str | None = None


class ContextWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words around secrets, for memd.redact.places.scored_context; secret_words.toml describes each list."""

    passwords: tuple[str, ...]
    opens: tuple[str, ...]
    access: tuple[str, ...]
    services: tuple[str, ...]
    locks: tuple[str, ...]
    codes: tuple[str, ...]
    whole: tuple[str, ...]
    tells: tuple[str, ...]
    tells_in_chinese: tuple[str, ...]
    may_tell: tuple[str, ...]
    sets: tuple[str, ...]
    others: tuple[str, ...]
    networks: tuple[str, ...]
    replaced: tuple[str, ...]
    replaced_by: tuple[str, ...]
    users: tuple[str, ...]
    known_users: tuple[str, ...]
    asks: tuple[str, ...]
    asked_times: tuple[str, ...]
    goes_on: tuple[str, ...]
    other_codes: tuple[str, ...]
    units: tuple[str, ...]
    no_locks: tuple[str, ...]
    counted_locks: tuple[str, ...]
    counted_codes: tuple[str, ...]
    typed_near: tuple[str, ...]
    quantities: tuple[str, ...]
    no_codes: tuple[str, ...]
    errors: tuple[str, ...]
    other_keys: tuple[str, ...]
    possessives: tuple[str, ...]
    owners: tuple[str, ...]
    called: tuple[str, ...]
    called_at_end: tuple[str, ...]
    does: tuple[str, ...]
    before_does: tuple[str, ...]
    as_abroad: tuple[str, ...]
    called_abroad: tuple[str, ...]
    typed_behind: tuple[str, ...]
    called_in_chinese: tuple[str, ...]
    can_in_chinese: tuple[str, ...]
    does_in_chinese: tuple[str, ...]


class KeyWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words before, between and behind words for keys, for memd.redact.keys.keys_in_sentences."""

    secret: tuple[str, ...]
    owned: tuple[str, ...]
    others: tuple[str, ...]
    others_in_chinese: tuple[str, ...]
    secret_abroad: tuple[str, ...]
    labels_east: tuple[str, ...]
    tells_east: tuple[str, ...]
    others_east: tuple[str, ...]
    sets: tuple[str, ...]
    sets_in_chinese: tuple[str, ...]


class PlainWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words around passwords that look like words, for memd.redact.passwords.plain_words and user_and_password."""

    ambiguous: frozenset[str]
    systems: tuple[str, ...]
    users_of_systems: frozenset[str]
    access_of_talk: frozenset[str]
    phrases: tuple[str, ...]
    users: tuple[str, ...]
    access: tuple[str, ...]
    of: tuple[str, ...]
    devices: tuple[str, ...]
    new: tuple[str, ...]
    says: tuple[str, ...]
    misspelled: tuple[str, ...]
    share_codes: tuple[str, ...]
    numbered_things: tuple[str, ...]
    spelled_labels: tuple[str, ...]
    spelled_of: frozenset[str]
    spelling: tuple[str, ...]
    function_words: frozenset[str]


class AnswerWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What security questions ask for, for memd.redact.passwords.security_answers."""

    people: tuple[str, ...]
    questions: tuple[str, ...]
    asks: frozenset[str]
    asks_joined: tuple[str, ...]
    words: tuple[str, ...]
    then_said: tuple[str, ...]
    words_east: tuple[str, ...]
    phrase_access: tuple[str, ...]
    phrase_elsewhere: tuple[str, ...]
    phrase_stops: tuple[str, ...]
    no_words: frozenset[str]
    remembered: tuple[str, ...]
    perhaps_remembered: tuple[str, ...]
    for_login: tuple[str, ...]
    for_login_only: tuple[str, ...]
    said_to: tuple[str, ...]
    others_said: tuple[str, ...]
    question_of: tuple[str, ...]


class LockWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words for codes and for what they open, for memd.redact.codes.lock_codes_other_languages and lock_codes_by_form."""

    others: tuple[str, ...]
    codes: tuple[str, ...]
    locks: tuple[str, ...]
    in_one: tuple[str, ...]
    opens: tuple[str, ...]
    then_opens: tuple[str, ...]
    unclear: frozenset[str]
    dials: tuple[str, ...]
    dial_locks: tuple[str, ...]
    keys: tuple[str, ...]
    keeps: tuple[str, ...]
    keeps_codes: tuple[str, ...]
    opened: tuple[str, ...]
    says: tuple[str, ...]


class SpokenNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Digits as words, for memd.redact.codes.digits_in_words."""

    digits: tuple[str, ...]
    digits_in_chinese: str
    labels: tuple[str, ...]
    labels_in_chinese: tuple[str, ...]
    says: tuple[str, ...]
    spelled_letters: tuple[str, ...]
    spelled_signs: tuple[str, ...]
    spelled_labels: tuple[str, ...]


class ReceivedCodeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words around codes that somebody got, for memd.redact.codes.received_codes."""

    received: tuple[str, ...]
    type_it: tuple[str, ...]
    grouped: tuple[str, ...]
    others: tuple[str, ...]


class AppPasswordWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words around passwords that a program or a provider draws, for memd.redact.passwords.app_passwords."""

    fours: tuple[str, ...]


class DescribedWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of passwords instead of naming them, for memd.redact.passwords.described."""

    made_of: tuple[str, ...]
    opened: tuple[str, ...]
    no_values: frozenset[str]
    spelled: tuple[str, ...]
    asks: tuple[str, ...]
    numbers_east: tuple[str, ...]
    then_together: tuple[str, ...]
    parts_east: tuple[str, ...]
    others_east: tuple[str, ...]


class MadeUpWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remarks beside passwords that are not named, for memd.redact.passwords.beside_a_remark."""

    cues: tuple[str, ...]
    loose_cues: tuple[str, ...]
    sure_cues: tuple[str, ...]
    announces: tuple[str, ...]
    others: tuple[str, ...]
    things: frozenset[str]
    before_names: tuple[str, ...]


class TypedCodeWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words near codes that stand apart, are written as words, or are turned, for memd.redact.codes.typed_codes."""

    codes: tuple[str, ...]
    locks: tuple[str, ...]
    aloud: tuple[str, ...]
    dials: tuple[str, ...]
    keypads: tuple[str, ...]
    sure: tuple[str, ...]
    named_locks: tuple[str, ...]
    others: tuple[str, ...]


class BelowWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Labels of what stands on the line below them, for memd.redact.places.line_below and turns_later."""

    labels: tuple[str, ...]
    in_chinese: tuple[str, ...]
    codes: tuple[str, ...]
    asked: tuple[str, ...]
    others: frozenset[str]
    short: tuple[str, ...]
    corrects: tuple[str, ...]
    next_line: tuple[str, ...]
    further_down: tuple[str, ...]


class SecretWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of secret_words.toml, which describes each list."""

    passwords: tuple[str, ...]
    ambiguous_passwords: tuple[str, ...]
    statements: tuple[str, ...]
    recovery: tuple[str, ...]
    recovery_of_one: tuple[str, ...]
    codes: tuple[CodeWord, ...]
    context: ContextWords
    keys: KeyWords
    plain: PlainWords
    answers: AnswerWords
    lock_codes: LockWords
    spoken_numbers: SpokenNumbers
    typed_codes: TypedCodeWords
    made_up: MadeUpWords
    received_codes: ReceivedCodeWords
    app_passwords: AppPasswordWords
    described: DescribedWords
    below: BelowWords


SECRET_WORDS = msgspec.convert(
    tomllib.loads(resources.files(__package__).joinpath("secret_words.toml").read_text("utf-8")), SecretWords
)


def shortest_anchors(words: Collection[str]) -> tuple[str, ...]:
    """Return the words without those that begin with another one: a search for the shorter one finds them, too."""
    return tuple(
        word for word in words if not any(word.startswith(other) for other in words if other != word)
    )


def either(words: Collection[str]) -> str:
    """Return a regular expression for any of some words; of two that begin alike, the longer one is tried first.

    What words begin with in common is written once: where a hundred words of all languages may follow, most are ruled out by
    their first character, which matters most in patterns that ignore case.
    """
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    if any(word != word.lower() for word in ordered):
        return "|".join(map(re.escape, ordered))
    return _either_of(ordered)


def _either_of(words: Sequence[str]) -> str:
    """Return the expression for some words, longest first, the last of which may be empty."""
    of_first: dict[str, list[str]] = {}
    for word in words:
        of_first.setdefault(word[:1], []).append(word)
    return "|".join(map(_beginning_alike, of_first.values()))


def _beginning_alike(words: Sequence[str]) -> str:
    """Return the expression for some words with the same first character, longest first."""
    if len(words) == 1:
        return re.escape(words[0])
    alike = next(at for at in count(1) if len({word[: at + 1] for word in words}) > 1)
    return f"{re.escape(words[0][:alike])}(?:{_either_of([word[alike:] for word in words])})"
