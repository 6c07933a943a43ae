"""The built-in rules in their order, why each of them finds a secret, and which of them are tried at an anchor."""

from collections.abc import Mapping

import msgspec

from memd.redact.codes import (
    authenticator_seeds,
    digits_in_words,
    lock_codes_by_form,
    lock_codes_english,
    lock_codes_other_languages,
    login_codes,
    received_codes,
    recovery_codes,
    typed_codes,
)
from memd.redact.keys import (
    keys_in_sentences,
    keys_in_sentences_east_asian,
    printed_keys,
    private_keys,
    token_formats,
    wallets,
)
from memd.redact.keys.token_formats import TOKEN_FORMATS, TokenFormat
from memd.redact.passwords import (
    app_passwords,
    beside_a_remark,
    described,
    logins,
    networks,
    passphrases,
    pinyin,
    plain_words,
    security_answers,
    sentences_english,
    sentences_other_languages,
    user_and_password,
    words_that_open,
)
from memd.redact.places import corrections, line_below, lists, scored_context, tables, turns_later
from memd.redact.programs import (
    assignments,
    client_calls,
    command_line,
    forms_and_browsers,
    function_calls,
    headers,
    links_that_let_in,
    password_files,
    settings_and_cookies,
    shell_input,
    tool_output,
    urls,
)
from memd.redact.rule import AnchorIndex, Rule, SecretSpan


def _reason_of_form(row: TokenFormat) -> str:
    return f"the form that {'many issuers give' if row.vendor == 'any' else f'{row.vendor} gives'} its tokens"


# Ordered by certainty: where finds overlap, the kind of the first rule is printed.
_RULES_AND_REASONS: tuple[tuple[tuple[Rule, ...], str], ...] = (
    (private_keys.RULES, "a block of a private key"),
    *(((rule,), _reason_of_form(row)) for rule, row in zip(token_formats.TOKENS, TOKEN_FORMATS, strict=True)),
    ((token_formats.APPLICATION,), "the number of an application of Meta, and its secret"),
    (token_formats.HASHES, "a password as a system keeps it, to try others on"),
    (headers.RULES, "a header that carries credentials"),
    (urls.RULES, "credentials in a URL"),
    (wallets.RULES, "words or keys of a wallet"),
    (assignments.RULES, "the value of a key that says what it holds"),
    (sentences_english.RULES, "a sentence that tells it"),
    (
        (
            *login_codes.RULES,
            *lock_codes_english.RULES,
            *lock_codes_other_languages.CHINESE,
            *printed_keys.LICENCE_KEYS,
            *recovery_codes.KEYS_AND_LISTS,
            *authenticator_seeds.RULES,
            *printed_keys.NETWORK_KEYS,
        ),
        "a code behind what it opens or confirms",
    ),
    (logins.RULES, "a password where a text speaks of logging in"),
    (sentences_other_languages.RULES, "a sentence that tells it"),
    (plain_words.RULES, "a word in quotes or at the end of a line behind a label"),
    (pinyin.RULES, "Chinese in Latin letters behind a label"),
    (networks.RULES, "a word beside the name of a network"),
    (user_and_password.RULES, "a password beside a user"),
    (security_answers.RULES, "the answer to a security question"),
    (lock_codes_other_languages.RULES, "a code behind what it opens"),
    (
        lock_codes_by_form.RULES,
        "a number in the form of a code beside a lock, or behind a verb for opening it",
    ),
    (
        (
            *received_codes.RULES,
            *recovery_codes.OF_APPLE,
            *keys_in_sentences.SHARES,
            *login_codes.ON_BACK_OF_CARD,
            *lock_codes_by_form.BEHIND_PICTURE,
            *lock_codes_english.THAT_UNLOCK,
            *printed_keys.ON_LABEL,
            *app_passwords.FOURS,
            *lock_codes_by_form.OF_BUTTONS,
            *sentences_english.TEXTED,
            *keys_in_sentences.HALVES,
        ),
        "a code that came by message, by post or with a device",
    ),
    (typed_codes.RULES, "a code as it is typed, drawn or turned, beside what it opens"),
    (passphrases.RULES, "words as a passphrase has them, behind a label"),
    (digits_in_words.RULES, "a code in words, behind a word for codes"),
    (
        recovery_codes.SINGLE_CODES,
        "a code that opens an account when everything else is lost, behind its name",
    ),
    (line_below.RULES, "a value alone on the line below its label"),
    (turns_later.RULES, "a turn that says nothing else, after one that asked for it"),
    (corrections.RULES, "a correction of a secret right before it"),
    (command_line.RULES, "an argument of a command that is a password or a token"),
    (function_calls.RULES, "a literal argument of a function that takes a password or a key"),
    (client_calls.RULES, "an argument of a call that connects a client"),
    (
        (
            *forms_and_browsers.FIELDS,
            *keys_in_sentences.VECTORS,
            *shell_input.HERE_STRINGS,
            *command_line.RARE_FLAGS,
            *settings_and_cookies.MOUNTS,
            *headers.OWN_HEADERS,
            *forms_and_browsers.STORAGE_AND_RECORDINGS,
            *urls.STREAMS,
            *settings_and_cookies.PPP,
            *keys_in_sentences.OF_DONGLES,
            *tool_output.CRACKED,
            *shell_input.ENCODED_AND_MISSED,
            *forms_and_browsers.SCENARIOS,
        ),
        "what a program is given in a place for a secret",
    ),
    (
        (
            *tool_output.RULES,
            *settings_and_cookies.COOKIES_BY_NAME,
            *tool_output.KEYS_AND_PASSWORDS_MADE,
            *command_line.LOGINS_AND_PASSPHRASES,
            *shell_input.PASSPHRASES_OF_DISKS,
            *tool_output.CIPHERS,
            *urls.ADDRESSES,
            *keys_in_sentences.BESIDE_VENDOR,
            *sentences_english.MISTYPED,
        ),
        "a place that a tool, a device or an export has for a secret",
    ),
    (password_files.RULES, "a file that keeps a user and a password a line"),
    (
        (
            *settings_and_cookies.RULES,
            *shell_input.FILES,
            *settings_and_cookies.DEVICES_AND_GAMES,
            *command_line.BESIDE_USER,
        ),
        "a place that a setting, a program or a cookie has for a secret",
    ),
    (links_that_let_in.RULES, "a link that lets in whoever has it"),
    ((*keys_in_sentences.RULES, *keys_in_sentences_east_asian.RULES), "a key that its sentence tells"),
    (
        (
            *lock_codes_english.DIGITS_ALONE,
            *lock_codes_by_form.BEFORE_SIREN,
            *lock_codes_other_languages.LOCKED_CHINESE,
            *login_codes.BEHIND_NAME,
            *lock_codes_english.OF_PLACES,
            *keys_in_sentences.OF_DEVICES,
            *lock_codes_by_form.BESIDE_KEY_OR_NUMBER,
            *login_codes.IN_CAPITALS,
            *security_answers.WORDS_OF_BANKS,
            *pinyin.LABELS_IN_PINYIN,
            *typed_codes.DIALLED,
            *login_codes.SENT_OR_LISTED,
            *lock_codes_other_languages.PASSWORDS_OF_DIGITS_CHINESE,
            *recovery_codes.LEFT_OVER,
            *printed_keys.KEYS_OF_GAMES,
            *app_passwords.LETTERS,
            *printed_keys.KEYS_OF_ROUTERS,
            *wallets.KEYS_AND_WORDS_ALONE,
            *login_codes.OF_WORDS,
            *keys_in_sentences_east_asian.OF_LETTERS,
        ),
        "a code or a key where it is used",
    ),
    (
        (
            *words_that_open.RULES,
            *user_and_password.BEHIND_LETTERS,
            *words_that_open.BESIDE_USER_OR_LABEL,
            *user_and_password.BEHIND_ADDRESS,
        ),
        "words behind what they open, or beside a user",
    ),
    (described.RULES, "a word behind what it is made of, how it is spelled, or a question"),
    (scored_context.RULES, "a value that the words around it tell"),
    (beside_a_remark.RULES, "words put together as in a password, beside a remark on one"),
)
RULES = tuple(rule for rules, _ in _RULES_AND_REASONS for rule in rules)
"""All built-in rules. The rank of a rule is its index."""
NO_RULE = len(RULES)
"""The rank of a secret that is found without a rule. Those that a user's rules find have higher ranks."""
_REASONS = {rule.name: reason for rules, reason in _RULES_AND_REASONS for rule in rules}


def explained(find: SecretSpan) -> tuple[str, str]:
    """Return the name of the rule that found a secret, and the reason; nothing of the value."""
    if find.rank < NO_RULE:
        name = RULES[find.rank].name
        return name, _REASONS[name]
    if find.rank > NO_RULE:
        return find.kind, "a rule in redact.extra"
    if find.kind == tables.KIND:
        return "table-or-list", "a cell of a column, or an item of a list, that is named like a secret"
    if find.kind == "private-key":
        return "private-key-middle", "lines of base64 and nothing else, as keys have them"
    if find.kind == "key":
        return "key-by-word", "a value drawn by chance beside a word for a key"
    if find.kind.endswith("-key"):
        return (
            "vendor-word",
            f"the form that the keys of {find.kind.removesuffix('-key')} have, and the name beside it",
        )
    return find.kind, "a number of a kind in redact.kinds"


Ranked = tuple[tuple[int, Rule], ...]
"""Rules, each with its rank."""


def _by_anchor(*, in_token: bool) -> dict[str, Ranked]:
    """Return the rules with a `find` function by anchor; an anchor that rules share is searched once."""
    found: dict[str, Ranked] = {}
    for rank, rule in enumerate(RULES):
        if rule.in_token is in_token and rule.walk is None:
            for anchor in rule.anchors:
                found[anchor] = (*found.get(anchor, ()), (rank, rule))
    return found


class TokenRules(msgspec.Struct, frozen=True):
    """The rules of an anchor of tokens, divided by whether they say what begins at the anchor."""

    beginning: Ranked
    others: Ranked
    pattern: str  # matches wherever one of the rules `beginning` finds something
    at_edge: bool


def _token_rules(rules: Ranked) -> TokenRules:
    beginning = tuple((rank, rule) for rank, rule in rules if rule.begins)
    return TokenRules(
        beginning,
        tuple((rank, rule) for rank, rule in rules if not rule.begins),
        "|".join(dict.fromkeys(f"(?:{pattern})" for _, rule in beginning for pattern in rule.begins)),
        all(rule.at_edge for _, rule in rules),
    )


RULES_IN_TOKENS = {anchor: _token_rules(rules) for anchor, rules in _by_anchor(in_token=True).items()}
"""By anchor: the rules that are tried where it is part of a token."""
TOKEN_ANCHORS = AnchorIndex(RULES_IN_TOKENS)
"""Finds those anchors."""


class RulesAnywhere(msgspec.Struct, frozen=True):
    """The rules of an anchor that may be anywhere, divided by whether they find something at a word of a sentence that continues."""

    also_in_prose: Ranked
    not_in_prose: Ranked
    is_key_block: bool  # a private key may begin at the anchor: its end may be any number of characters away
    names_table: bool  # a column or a list may be named so
    names_in_prose: bool  # also where a sentence continues


def _rules_anywhere(anchor: str, rules: Ranked, *, has_digits: bool) -> RulesAnywhere:
    tried = [(rank, rule) for rank, rule in rules if has_digits or not rule.needs_digit]
    return RulesAnywhere(
        tuple((rank, rule) for rank, rule in tried if not rule.skips_prose),
        tuple((rank, rule) for rank, rule in tried if rule.skips_prose),
        rules[0][0] < len(private_keys.RULES),
        anchor in tables.ANCHORS,
        not any(rule.skips_prose for _, rule in rules),
    )


def _anywhere(*, has_digits: bool) -> dict[str, RulesAnywhere]:
    """Return the rules of texts with or without digits, of the anchors that tell something in them."""
    found = {
        anchor: _rules_anywhere(anchor, rules, has_digits=has_digits)
        for anchor, rules in _by_anchor(in_token=False).items()
    }
    return {
        anchor: rules
        for anchor, rules in found.items()
        if rules.also_in_prose or rules.not_in_prose or rules.names_table
    }


RULES_ANYWHERE = _anywhere(has_digits=True)
"""By anchor: the rules that are tried wherever it is."""
RULES_WITHOUT_DIGITS = _anywhere(has_digits=False)
"""The same for texts without a digit: without the rules for codes, which are half of them."""
WALKS = tuple((rank, rule) for rank, rule in enumerate(RULES) if rule.walk is not None)
"""The rules with a `walk` function, each with its rank."""


def _walks_at(*, has_digits: bool) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for rank, rule in WALKS:
        for anchor in dict.fromkeys(rule.anchors) if has_digits or not rule.needs_digit else ():
            found[anchor] = (*found.get(anchor, ()), rank)
    return found


WALKS_AT: Mapping[str, tuple[int, ...]] = _walks_at(has_digits=True)
"""By anchor: the ranks of those rules."""
WALKS_WITHOUT_DIGITS: Mapping[str, tuple[int, ...]] = _walks_at(has_digits=False)
"""The same for texts without a digit."""
ANCHORS = AnchorIndex(dict.fromkeys((*RULES_ANYWHERE, *WALKS_AT, *lists.ANCHORS)))
"""Finds the anchors of all rules that are not of tokens, and the names of lists."""
RANK_OF_SIGNED = RULES.index(scored_context.RULES[0])
"""The rank of passwords that ``scored_context.signed`` finds without an anchor."""
