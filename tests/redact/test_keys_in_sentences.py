"""Keys that a sentence or a setting tells, and that look like much else."""

from random import Random

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

_REDACTOR = Redactor(Redact())


@pytest.mark.parametrize(
    "text",
    [
        "the API key we use for geocoding is §, limit 2,500 a day",
        "aes key hex § iv 0102030405060708090a0b0c0d0e0f10",
        "the hmac key is sixty-four hex digits, §",
        "Our signing secret (webhooks) changed on Friday to §.",
        "高德 web service 的 key 用 §",
        "图床的token填这个 §",
        "key 给你 §，省着点",
        "对方给的公钥不对，私钥倒是贴过来了，§",
    ],
)
@pytest.mark.parametrize("size", [16, 32, 64])
def test_digits_beside_their_word_go(text: str, size: int) -> None:
    """However long the key is, and whatever stands between it and its word."""
    key = "".join(Random(size).choices("0123456789abcdef", k=size))
    said = text.replace("§", key)
    assert key not in _REDACTOR.redact(said).text


@pytest.mark.parametrize(
    "text",
    [
        "API key id is §, not secret",
        "the API key hash is §",
        "private key fingerprint: §",
        "提交号 §，回滚用这个",
        "公钥是 §",
        "secret santa is Tom. The checksum is §",
    ],
)
def test_digits_of_something_else_stay(text: str) -> None:
    """Digests, identifiers and public keys."""
    said = text.replace("§", "8c1f0be27d5a4936b2e7d41c09af6358")
    assert _REDACTOR.redact(said).text == said


def _listed(values: list[int]) -> str:
    return f"the network key is [{', '.join(map(str, values))}], the channel 15"


@pytest.mark.parametrize("more", [0, 1])
def test_the_name_of_a_variable_is_read_up_to_a_length(more: int) -> None:
    """Longer than names are, it is no name."""
    name = ("MANUFACTURER_" * 9)[
        : shipped("memd.redact.keys.keys_in_sentences._CHARS_OF_NAME") + more - 1
    ] + "X"
    said = f"set {name}_KEY to px-88d1f0c3a9b2 please"
    assert ("px-88d1f0c3a9b2" in _REDACTOR.redact(said).text) is bool(more)


def test_a_list_of_bytes_goes() -> None:
    """As many as a key has."""
    rng = Random(3)
    for size in (16, 24, 32):
        values = [rng.randrange(256) for _ in range(size)]
        assert str(values[0]) + "," not in _REDACTOR.redact(_listed(values)).text
    hexadecimal = ", ".join(f"0x{rng.randrange(256):02X}" for _ in range(16))
    assert hexadecimal not in _REDACTOR.redact(f"static const uint8_t aes_key[] = {{{hexadecimal}}};").text


def test_a_list_of_other_numbers_stays() -> None:
    """One in order, one of few numbers, one with larger numbers, and one of another length."""
    least = shipped("memd.redact.keys.keys_in_sentences._LEAST_DIFFERENT")
    drawn = Random(4).sample(range(256), 16)
    few = [value % (least - 1) + 7 for value in drawn]
    enough = [value % least + 7 for value in range(100, 116)]
    for values in (sorted(drawn), few, [*drawn[:15], 256], drawn[:15]):
        assert _REDACTOR.redact(_listed(values)).text == _listed(values)
    assert _REDACTOR.redact(_listed(enough)).text != _listed(enough)


@pytest.mark.parametrize(
    "text",
    [
        "把 .env 里的 OPENAI_PROXY_KEY 换成 § 再跑一次",
        "DB_PASSWORD is now §, restart the pod",
        "set REDIS_PASS to § please",
        "JWT_SECRET 设成 §，两边一致",
    ],
)
def test_the_value_that_a_variable_is_given_goes(text: str) -> None:
    """Where a sentence gives it."""
    said = text.replace("§", "px-88d1f0c3a9b2")
    assert "px-88d1f0c3a9b2" not in _REDACTOR.redact(said).text


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD is read from config_v2.toml",
        "PUBLIC_KEY is now px-88d1f0c3a9b2",
        "set MAX_TOKENS to 4096tokens",
        "API_KEY is os.environ['API_KEY2']",
        "CACHE_KEY 改成 user_v2_2026",
    ],
)
def test_what_says_something_else_of_a_variable_stays(text: str) -> None:
    """Where it is read from, and what is no secret by its name."""
    assert _REDACTOR.redact(text).text == text


def test_bytes_that_a_device_prints_go() -> None:
    """With blanks or colons between; a fingerprint stays."""
    printed = " ".join(f"{byte:02X}" for byte in Random(6).randbytes(16))
    assert printed not in _REDACTOR.redact(f"LoRa AppKey = {printed}").text
    colons = printed.replace(" ", ":").lower()
    assert colons not in _REDACTOR.redact(f"thread network key: {colons}").text
    for text in (f"key fingerprint: {colons}", f"public key: {colons}", f"MAC {colons[:17]}"):
        assert _REDACTOR.redact(text).text == text


def test_the_key_of_a_cipher_goes_from_a_command() -> None:
    """And its initial vector, which is no secret, stays."""
    key, vector = Random(7).randbytes(32).hex(), Random(8).randbytes(16).hex()
    redacted = _REDACTOR.redact(f"openssl enc -aes-256-cbc -in a -K {key} -iv {vector} -out b").text
    assert key not in redacted
    assert vector in redacted


@pytest.mark.parametrize("text", ["key：§", "地图的key用§", "大模型平台充好了，key 给你 §"])
def test_a_key_with_a_prefix_goes_where_a_sentence_in_chinese_gives_it(text: str) -> None:
    """A full-width colon tells such a sentence, too."""
    said = text.replace("§", "ak-7f3e9d0b2c5a48168e1f")
    assert "7f3e9d0b2c5a" not in _REDACTOR.redact(said).text
