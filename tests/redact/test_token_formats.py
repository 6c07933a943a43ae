"""Every format of the table, in every surrounding, and what only looks like one."""

import random
import re
import string
from collections.abc import Iterator, Sequence
from datetime import date

import pytest
from hypothesis import settings

from memd.config.settings import Redact
from memd.redact.keys.token_formats import TOKEN_FORMATS, TokenFormat, where_one_begins
from memd.redact.keys.vendor_keys import VendorForm, vendor_forms
from memd.redact.redactor import Redactor
from memd.redact.values.randomness import is_random, is_scrambled
from tests.bounds import shipped
from tests.redact.shapes import drawn
from tests.redact.surroundings import SURROUNDINGS

_REDACTOR = Redactor(Redact())
_SOURCES = {
    "gitleaks",
    "betterleaks",
    "trufflehog",
    "noseyparker",
    "kingfisher",
    "keyhog",
    "credsweeper",
    "vendor",
}


def _value(row: TokenFormat, rng: random.Random) -> str:
    """A token of a format; where words have its shape, one that has no word's letters."""
    while True:
        text = drawn(row.shape, rng)
        # The end of a host or the beginning of a path stands behind the rest of it.
        text = f"host{text}" if text[0] in "./" and not row.before else text
        if row.entropy and not is_random(text, row.entropy):
            continue
        if not row.scrambled or is_scrambled(re.split("[_-]", text)[-1]):
            return text


def _secret(row: TokenFormat, text: str) -> str:
    match = re.search(rf"{row.shape}\Z", text, re.ASCII)
    assert match is not None
    return str(match.groupdict().get("secret") or match[0])


def _tries() -> int:
    """How many of each are drawn: two in runs of all tests, else one."""
    examples = settings().max_examples
    return 20 if examples > 100 else 2 if examples > 20 else 1


def _surroundings(at: int) -> dict[str, str]:
    """The surroundings in which a row of the table is tried: all in runs of all tests, else a quarter, of each row the next one."""
    share = 1 if settings().max_examples > 20 else 4
    return {
        name: around for nth, (name, around) in enumerate(SURROUNDINGS.items()) if nth % share == at % share
    }


@pytest.mark.parametrize(
    "first", sorted({row.kind[0] for row in TOKEN_FORMATS})
)  # each row by itself would take longer to begin than to run
def test_a_token_goes_from_every_surrounding(first: str) -> None:
    """No word says what it is: its form alone does."""
    left: list[str] = []
    for at, row in enumerate(TOKEN_FORMATS):
        for name, around in _surroundings(at).items() if row.kind[0] == first else ():
            for number in range(_tries()):
                text = _value(row, random.Random(f"{row.kind}/{name}/{number}"))
                secret = _secret(row, text)
                redacted = _REDACTOR.redact(around.replace("§", text)).text
                if secret in redacted or secret[-12:] in redacted:
                    left.append(f"{row.kind}, {name}: {text} -> {redacted}")
    assert left == []


def test_the_shortest_token_goes() -> None:
    """Fewer signs together are not looked at for tokens, so that no format has fewer."""
    least = shipped("memd.redact.rule.LEAST_RUN")
    shortest = min(len(_value(row, random.Random(number))) for row in TOKEN_FORMATS for number in range(20))
    assert shortest >= least
    token = "xoxb-123456789"
    assert len(token) == least
    for text in (token, f"a {token} b", f'{{"key":"{token}"}}', f"别的{token}"):
        assert _REDACTOR.redact(text).text == text.replace(token, "[REDACTED:slack-token]")


def test_a_row_says_where_it_is_from() -> None:
    """Each kind once; its anchors are part of what its shape describes."""
    assert len({row.kind for row in TOKEN_FORMATS}) == len(TOKEN_FORMATS) > 240
    for row in TOKEN_FORMATS:
        assert re.fullmatch(r"[a-z0-9-]{1,40}", row.kind), row
        assert row.vendor, row
        assert row.source in _SOURCES, row
        assert (row.looked_up is None) == (row.source == "vendor"), row
        assert row.looked_up is None or row.looked_up >= date(2026, 11, 22), row
        rng = random.Random(row.kind)
        for _ in range(5):
            text = drawn(row.shape, rng)
            assert any(anchor in text for anchor in row.anchors), (row.kind, text)


@pytest.mark.parametrize("before", ["%3D", "%22", "x", "32m", "u00"])
def test_what_is_glued_to_a_token_does_not_save_it(before: str) -> None:
    """The rest of an escape, or a letter."""
    for shape in (r"ghp_[A-Za-z0-9]{36}", r"sk-ant-api03-[A-Za-z0-9]{90}", r"glpat-[A-Za-z0-9]{20}"):
        text = drawn(shape, random.Random(before + shape))
        assert text not in _REDACTOR.redact(f"a {before}{text} b").text


@pytest.mark.parametrize(
    "text",
    [
        "the task-ant-colony-optimisation-of-a-route",
        "monkey-0123456789abcdef0123456789abcdef.png",
        "disk-or-memory-whichever-comes-first-2026",
        "web_application_firewall_rules_2024_v2_1",
        "API-GATEWAY-CONFIGURATION-V2",
        "api_key_of_a_customer_is_not_shown_here.value",
        "token-based:authentication",
        "live_reload_of_the_development_server_1",
        "s.replaceAllOccurrencesOf12",
        "lip_sync_animation_pipeline_2",
        "ion_channel_conductance_measurement_2",
        "mint_condition_of_the_collection_in_2024",
        "dub_techno_and_reggae_of_the_year_2024",
        "MK_TEST_ALIGNMENT_OF_2_FIELDS",
        "skey_derivation_function_2",
        "org_0123456789abcdef0123456789abcdef",
        "google.cloud.speech.v1.speech-client.transcribe2",
        "config.v1.another-name-of-a-file.0123456789ab.d",
    ],
)
def test_what_begins_like_a_token_stays(text: str) -> None:
    """Names and words with a prefix of the table."""
    assert _REDACTOR.redact(f"see {text} now").text == f"see {text} now"


@pytest.mark.parametrize("label", ["sha256=", "sha512-", "sha384-", "h1:"])
def test_the_digest_of_a_file_stays(label: str) -> None:
    """Though it begins like a token: lists of files and lock files have thousands."""
    for row in TOKEN_FORMATS:
        for anchor in row.anchors:
            if re.fullmatch(r"[A-Za-z0-9_-]+", anchor):
                rng = random.Random(anchor)
                digest = anchor + "".join(
                    rng.choices(string.ascii_letters + string.digits + "-_", k=43 - len(anchor))
                )
                text = f"memd/a_file.py,{label}{digest},14949"
                assert _REDACTOR.redact(text).text == text


def _key(form: VendorForm, rng: random.Random) -> str:
    """A key of a form, neither a number nor made of few signs."""
    while True:
        text = drawn(form.shape, rng)
        if is_random(text, 3.0) and text[0] not in "-_" and text[-1] not in "-_":
            return text


_BESIDE = (
    "use my ¤ admin key § for the search",
    "the ¤ token for staging is § and it works",
    "¤_API_SECRET=§",
    '{"¤AccessToken": "§", "on": true}',
    "| ¤ key | `§` |",
    "§ is our ¤ api key",
    "the ¤ key:\n§\nit is new",
    "我的 ¤ 密钥是 § 别外传",
    "¤的令牌：§。",
    "mi clave de ¤: §",
    "ключ ¤: §",
    "the ¤ token we need for the nightly job is §, rotate it",
)


_NOT_BESIDE = (
    "¤ built § last night",
    "the ¤ request id is §",
    "rotated the ¤ token in §",
    "¤ cache keys are old. Build §",
    "the ¤ key is in the vault\ncommit §",
)
_PARTS = 10  # each form by itself would take longer to begin than to run


def _vendors(part: int) -> Iterator[tuple[int, VendorForm, str]]:
    """A part of all vendors with their forms, numbered."""
    pairs = [(form, vendor) for form in vendor_forms() for vendor in form.vendors.split()]
    for number in range(part, len(pairs), _PARTS):
        yield number, *pairs[number]


def _phrases(phrases: Sequence[str], number: int) -> Sequence[str]:
    """Of a vendor; in quick runs every third, from another one on for the next vendor."""
    return phrases if _tries() > 1 else phrases[number // _PARTS % 3 :: 3]


@pytest.mark.parametrize("part", range(_PARTS))
def test_a_key_goes_beside_its_vendor_and_a_word_for_it(part: int) -> None:
    """However the two are written; the next line stays."""
    left: list[str] = []
    for number, form, vendor in _vendors(part):
        rng = random.Random(vendor + form.shape)
        for around in _phrases(_BESIDE, number):
            key = _key(form, rng)
            text = around.replace("¤", rng.choice([vendor, vendor.title(), vendor.upper()])).replace("§", key)
            if key in _REDACTOR.redact(text).text:
                left.append(text)
    assert left == []


@pytest.mark.parametrize("part", range(_PARTS))
def test_what_is_like_a_key_stays_beside_its_vendor(part: int) -> None:
    """Where nothing says that it is one, or says that it is something else."""
    taken: list[str] = []
    for number, form, vendor in _vendors(part):
        rng = random.Random(vendor)
        for around in _phrases(_NOT_BESIDE, number):
            text = around.replace("¤", vendor).replace("§", _key(form, rng).lower())
            if _REDACTOR.redact(text).text != text:
                taken.append(text)
    assert taken == []


def test_the_vendor_of_a_key_stands_near_it() -> None:
    """So many signs before it at most, or behind it; written as one word or as several."""
    key = "3f9a1c77b2caa2109e4d80bc3f1d6e75"
    before = shipped("memd.redact.keys.vendor_keys._BESIDE_CHARS")
    behind = shipped("memd.redact.keys.vendor_keys._BEHIND_CHARS")
    for far in (0, 1):
        text = f"datadog{'-' * (before + far - len('datadog key for '))} key for {key}"
        assert (key in _REDACTOR.redact(text).text) is bool(far)
        text = f"{key} is the key of{'-' * (behind + far - len(' is the key of' + 'datadog'))}datadog"
        assert (key in _REDACTOR.redact(text).text) is bool(far)
    for vendor in ("drone ci", "Drone-CI", "DRONE_CI", "droneCI", "DroneCi"):
        assert key not in _REDACTOR.redact(f"my {vendor} token for staging {key}").text


def test_a_row_of_vendors_says_where_it_is_from() -> None:
    """Each vendor once in it, and as it is looked up."""
    rows = vendor_forms()
    assert sum(len(row.vendors.split()) for row in rows) > 500
    for row in rows:
        vendors = row.vendors.split()
        assert len(set(vendors)) == len(vendors), row
        assert all(re.fullmatch("[a-z0-9]{2,36}", vendor) for vendor in vendors), row
        assert row.source in _SOURCES, row
        assert (row.looked_up is None) == (row.source == "vendor"), row


@pytest.mark.parametrize("gap", ["", "\n", "=\n> ", '" + "', "**"])
def test_what_begins_a_token_is_told_by_one_pattern_for_all_formats(gap: str) -> None:
    """Where many have the anchor of a format, no other place is asked: of whole tokens, and of those in two parts."""
    known = [row for row in TOKEN_FORMATS if row.begins]
    every = "|".join({f"(?:{pattern})" for row in known for pattern in row.begins})
    found = 0
    for row in known:
        rng = random.Random(row.kind + gap)
        text = _value(row, rng)
        at = min(text.index(anchor) for anchor in row.anchors if anchor in text)
        part = len(text) - rng.randrange(1, 12)
        broken = f"{text[:part]}{gap}{text[part:]} "
        if (row.find_broken if row.is_strict else row.find)(broken, at) is not None:
            found += 1
            assert where_one_begins(every, [at], broken) == [at], (row.kind, broken)
    assert found > len(known) / 2


@pytest.mark.parametrize("more", [-1, 0, 1, 900])
def test_a_token_goes_as_a_whole_however_long(more: int) -> None:
    """Though no more than its first signs are read to know it, where letters stand before it."""
    size = shipped("memd.redact.keys.token_formats._MOST_READ") + more
    token = "sk-ant-api03-" + "".join(
        random.Random(more).choices(string.ascii_letters + string.digits, k=size - 13)
    )
    for before in ("", "%3D"):
        assert _REDACTOR.redact(f"a {before}{token} b").text.endswith("[REDACTED:anthropic-key] b")


@pytest.mark.parametrize("more", [0, 1])
def test_what_a_token_ends_with_is_looked_for_in_so_many_signs(more: int) -> None:
    """Else one without an end would be read as a whole at each place where one may begin."""
    row = TokenFormat("abc-key", "ABC", ("abc_",), r"abc_[a-z]++-", "vendor")
    many = shipped("memd.redact.keys.token_formats._MOST_READ") - 5 + more
    text = "abc_" + ("xy" * many)[:many] + "-"
    assert row.find(text, 0) == (None if more else (0, len(text)))


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_signs_tell_whether_a_token_is_random(more: int) -> None:
    """What stands behind them is not looked at."""
    row = TokenFormat("abc-key", "ABC", ("abc_",), r"abc_[a-z0-9]{4,}+", "vendor", entropy=0.1)
    many = shipped("memd.redact.keys.token_formats._MOST_JUDGED") - 5 + more
    text = "abc_" + ("xy" * many)[:many] + "1y"
    assert row.find(text, 0) == (None if more else (0, len(text)))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("EPPO=Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W", "Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W"),
        ("SHAZAM=85de8e8e1a3946c743f545a29af384f2", ""),
        ("DATADOG=85de8e8e1a3946c743f545a29af384f2", "85de8e8e1a3946c743f545a29af384f2"),
        ("our datadog key is 408bfcb0-e673-98bb-2ad8-83dbfdc12d2c", "408bfcb0-e673-98bb-2ad8-83dbfdc12d2c"),
        ("jumio client_secret LwJodFX1GOZrhrztAQpiN0k8s0Rc3VgT", "LwJodFX1GOZrhrztAQpiN0k8s0Rc3VgT"),
        ('calendly signing_key "Kp4Qx7Rm2Sn5Tb8Vw3YzLq9WKp4Qx7"', "Kp4Qx7Rm2Sn5Tb8Vw3YzLq9WKp4Qx7"),
        ("acme_live_9mQ2xT7vB4nK8rZ1wL5cP3yH", "acme_live_9mQ2xT7vB4nK8rZ1wL5cP3yH"),
        ("我的 fooctl-api-9mQ2xT7vB4nK8rZ1wL5cP3yH 过期了", "fooctl-api-9mQ2xT7vB4nK8rZ1wL5cP3yH"),
    ],
)
def test_a_key_of_a_form_that_no_row_knows_goes(text: str, secret: str) -> None:
    """Behind a variable of an environment, its vendor or a word for a key, or a prefix that has such a word."""
    redacted = _REDACTOR.redact(text).text
    assert (secret not in redacted) if secret else (redacted == text)


@pytest.mark.parametrize(
    "text",
    [
        "the new Acme key just came in: §",
        "hey, I rotated the Acme key, new one is § — can you update staging?",
        "I put § into the Acme settings as the api key, like you said",
        "they gave us § as the key for Acme, valid until March",
        "paste § when it asks for the Acme token",
        "for Acme use § , it's the one Maria created",
        "Mei gave me the Acme token yesterday, here: §",
        "把 § 填到 Acme 的 access key 那一栏",
        "Acme 的 secret 我贴在这里：§",
        "你用 § 这个 Acme 的 key 试一下",
    ],
)
@pytest.mark.parametrize("key", ["Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W", "k4pq7xr2ms5nt8bv3wyz9lq6w"])
def test_a_key_of_anybody_goes_where_its_sentence_speaks_of_one(text: str, key: str) -> None:
    """Before it or behind it; an identifier in its place stays."""
    assert key not in _REDACTOR.redact(text.replace("§", key)).text
    for identifier in ("call_Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W", "msg_Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W"):
        said = f"used 500 tokens for {identifier} and 20 more"
        assert _REDACTOR.redact(said).text == said


@pytest.mark.parametrize(
    "text",
    [
        "the key is wrong. See Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W for more",
        "the token count of session Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W is 500",
        "the key question of run Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W is open",
        "Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W is the id of the request with the token",
        "cache key: Kp4Qx7Rm2Sn5Tb8Vw3Yz",
        "the new key came with commit 85de8e8e1a3946c743f545a29af384f2a1b2c3d4",
        "the Datadog key that came with the commit is 85de8e8e1a3946c743f545a29af384f2",
        "the Datadog page with the key is gone. The page is 85de8e8e1a3946c743f545a29af384f2",
    ],
)
def test_what_is_beside_a_word_for_a_key_and_none_stays(text: str) -> None:
    """Where the sentence says that it is something else, or has ended."""
    assert _REDACTOR.redact(text).text == text


def test_so_many_signs_of_a_variable_tell_a_key() -> None:
    """Of one whose name says nothing."""
    least = shipped("memd.redact.keys.vendor_keys._LEAST_OF_VARIABLE")
    value = "Kp4Qx7Rm2Sn5Tb8Vw3YzLq9W"
    assert _REDACTOR.redact(f"EPPO={value[:least]}").text == "EPPO=[REDACTED:key]"
    assert _REDACTOR.redact(f"EPPO={value[: least - 1]}").text == f"EPPO={value[: least - 1]}"


@pytest.mark.parametrize(
    "text",
    [
        "call_9mQ2xT7vB4nK8rZ1wL5cP3yH",
        "toolu_01A9mQ2xT7vB4nK8rZ1wL5cP3",
        "chatcmpl-9mQ2xT7vB4nK8rZ1wL5cP3yHAbCdE",
        "pi_3MtwBwLkdIwHu7ix28a3tqPa",
        "TRACE_ID=9mQ2xT7vB4nK8rZ1wL5cP3yH",
        "NONCE=9mQ2xT7vB4nK8rZ1wL5cP3yH",
        "GITHUB_SHA=85de8e8e1a3946c743f545a29af384f2a1b2c3d4",
        "SENTRY_RELEASE=85de8e8e1a3946c743f545a29af384f2a1b2c3d4",
        "the api_key getHTTP2ClientByIdentifier",
        "test_live_reload_of_the_page_2_after_3_changes",
        "my-key-derivationFunctionOfVersion2And3",
        "lru_cache_key_85de8e8e1a3946c743f545a29af384f2",
        "1:OBrEtMMXQa0bNrQitary8lHCsiAGTntr/pinBb00AH3",
        'api key is missing\nETag: "734373955a510d0c436a66040fd3f8e6"',
    ],
)
def test_identifiers_and_names_stay(text: str) -> None:
    """Those of messages, calls and objects, of programs, and what only begins like a word for a secret."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("token 1234567890123456|aB3dE6gH9jK2mN5pQ8sT1vW4yZ7 of the app", "facebook-token"),
        ('"params": ["1-' + "aB3dE6gH9jK2mN5p" * 4 + '"]', "truenas-key"),
        ("stored as $2b$12$" + "aB3dE6gH9jK2mN5pQ8sT1v" * 2 + "aB3dE6gH9 for ann", "password-hash"),
        (
            "root:$6$saltsalt$" + "aB3dE6gH9jK2mN5pQ8sT1v" * 3 + "aB3dE6gH9jK2mN5pQ8sT:19700:0:::",
            "password-hash",
        ),
        (
            "got $krb5asrep$23$ann@example.org:" + "3e156ada" * 4 + "$" + "007497cb51b6c811" * 6,
            "password-hash",
        ),
        (
            "got $krb5tgs$23$*ann$example.org$web*$" + "3e156ada" * 4 + "$" + "007497cb51b6c811" * 6,
            "password-hash",
        ),
    ],
)
def test_what_has_a_form_and_no_anchor_among_the_signs_of_tokens(text: str, kind: str) -> None:
    """A bar between two parts, a number before a key, a dollar sign first."""
    assert dict(_REDACTOR.redact(text).counts) == {kind: 1}


def test_what_a_mark_says_is_no_word_for_a_key() -> None:
    """Beside a key that was taken out stands what nothing says to be one."""
    text = "[REDACTED:api-key] 3f9a1c77b2caa2109e4d80bc3f1d6e75 aB3dE6gH9jK2mN5pQ8sT1v"
    assert _REDACTOR.redact(text).text == text
