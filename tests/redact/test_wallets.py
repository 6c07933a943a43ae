"""Words and keys that open wallets."""

import base64
import binascii
import re
from random import Random

import pytest
from mnemonic import Mnemonic

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

_REDACTOR = Redactor(Redact())


def _words(language: str, bits: int, seed: int) -> list[str]:
    return str(Mnemonic(language).to_mnemonic(Random(seed).randbytes(bits // 8))).split()


@pytest.mark.parametrize("bits", [128, 160, 192, 224, 256])
@pytest.mark.parametrize(
    "text",
    [
        "my metamask words are {} can you check them",
        "Seed phrase of the hardware wallet (tell nobody):\n{}",
        "ledger backup\n{}",
        "助记词抄一份：{}\n别发给别人",
        "the recovery list of Ann, from last year:\n\n{}\n\nand nothing else",
    ],
)
@pytest.mark.parametrize("apart", [" ", ", ", "\n", "numbers"])
def test_a_phrase_goes_whole(bits: int, text: str, apart: str) -> None:
    """However its words are written down; what stands around them stays."""
    words = _words("english", bits, seed=bits)
    said = (
        apart.join(words)
        if apart != "numbers"
        else " ".join(f"{n}. {word}" for n, word in enumerate(words, 1))
    )
    redacted = _REDACTOR.redact(text.format(said)).text
    kept = set(re.findall("[a-z]+", redacted)) - set(re.findall("[a-z]+", text))
    assert kept.isdisjoint(words)
    assert redacted.startswith(text[: text.index("{")].rstrip("\n ")[:12])


@pytest.mark.parametrize("language", ["chinese_simplified", "spanish", "japanese", "korean", "french"])
def test_a_phrase_may_be_in_another_language(language: str) -> None:
    """Where the text says that it is one."""
    said = " ".join(_words(language, 128, seed=5))
    assert said not in _REDACTOR.redact(f"mnemonic phrase:\n{said}").text
    assert said not in _REDACTOR.redact(f"钱包助记词：{said}").text


def test_words_without_their_checksum_stay() -> None:
    """Where nothing says that they are a phrase, twelve words of the list are any words."""
    words = _words("english", 128, seed=1)
    text = "the wallet of Ann had " + " ".join(reversed(words))
    assert not Mnemonic("english").check(" ".join(reversed(words)))
    assert _REDACTOR.redact(text).text == text


def _stellar(first: int) -> str:
    raw = bytes([first]) + Random(3).randbytes(32)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


def test_a_seed_of_stellar_goes() -> None:
    """An address, and what lacks the checksum, stay."""
    seed, address = _stellar(0x90), _stellar(0x30)
    text = f"the account {address} on stellar has "
    assert _REDACTOR.redact(text + seed).text == text + "[REDACTED:wallet-key]"
    other = seed[:-1] + ("A" if seed[-1] != "A" else "B")
    assert other in _REDACTOR.redact(f"stellar: {other}").text


def test_keys_as_numbers_and_in_a_list_go() -> None:
    """64 bytes of Solana, and accounts of a development network."""
    drawn = ",".join(str(byte) for byte in Random(2).randbytes(64))
    assert _REDACTOR.redact(f"$ cat ~/.config/solana/id.json\n[{drawn}]").text.endswith(
        "[[REDACTED:wallet-key]]"
    )
    rows = f"solana rows [{drawn[: drawn.rindex(',')]}]"
    assert _REDACTOR.redact(rows).text == rows
    keys = [f'"0x{Random(n).randbytes(32).hex()}"' for n in (1, 2)]
    redacted = _REDACTOR.redact(f"accounts: [{keys[0]}, {keys[1]}]").text
    assert redacted == "accounts: [[REDACTED:wallet-key]]"


@pytest.mark.parametrize("far", [0, 1])
def test_words_and_keys_stand_near_what_speaks_of_them(far: int) -> None:
    """So many signs behind it, or around it; what is further away is of something else."""
    said = " ".join(_words("english", 128, seed=1))
    gap = "." * (shipped("memd.redact.keys.wallets._WORDS_CHARS") - len("ledger") - len(said) + far)
    assert (said in _REDACTOR.redact(f"ledger{gap}{said}").text) is bool(far)
    seed = _stellar(0x90)
    gap = "." * (shipped("memd.redact.keys.wallets._STELLAR_CHARS") - len("stellar") - len(seed) + far)
    assert (seed in _REDACTOR.redact(f"stellar{gap}{seed}").text) is bool(far)
    drawn = ",".join(str(byte) for byte in Random(2).randbytes(64))
    gap = "." * (shipped("memd.redact.keys.wallets._BYTES_CHARS") - len("solana") + far)
    assert (drawn in _REDACTOR.redact(f"solana{gap}[{drawn}]").text) is bool(far)


def test_a_numbered_list_of_words_of_wallets_goes_without_a_label() -> None:
    """Each on a line or not; of other words it stays, and so does what stands around it."""
    most = int(shipped("memd.redact.keys.wallets._CHARS_OF_LIST"))
    words = [
        "orbit",
        "walnut",
        "hazard",
        "simple",
        "invite",
        "drum",
        "alien",
        "bronze",
        "fit",
        "blanket",
        "wagon",
        "yellow",
    ]
    listed = "\n".join(f"{number}. {word}" for number, word in enumerate(words, 1))
    assert len(listed) < most
    assert _REDACTOR.redact(f"paper copy:\n{listed}\nin the drawer").text.startswith(
        "paper copy:\n[REDACTED:seed-phrase]"
    )
    others = "\n".join(f"{number}. {word}" for number, word in enumerate(["apples", "plums"] * 6, 1))
    assert _REDACTOR.redact(others).text == others
