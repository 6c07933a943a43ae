"""Values drawn by chance: passwords, keys and tokens of a shape that is asked for."""

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from typing import Final

ALNUM: Final = string.ascii_letters + string.digits
UPPER: Final = string.ascii_uppercase + string.digits
HEX: Final = "0123456789abcdef"
_WORDS: Final = [
    "sunshine",
    "dragon",
    "monkey",
    "swordfish",
    "falcon",
    "purple",
    "winter",
    "coffee",
    "guitar",
    "rocket",
    "panther",
    "mustang",
    "orange",
    "tiger",
    "banana",
    "silver",
    "hammer",
    "pirate",
    "wizard",
    "jupiter",
    "saturn",
    "velvet",
    "cactus",
    "walrus",
    "lantern",
    "pebble",
    "thunder",
]
_HAN: Final = "春眠觉晓处闻啼鸟夜来风雨声花落床前明月光疑霜山河湖海"
_CLASS: Final = re.compile(r"(?P<set>\[[^\]]+\])\{(?P<low>\d+)(?:,(?P<high>\d+))?\}")


def some(rng: random.Random, alphabet: str, low: int, high: int | None = None) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=rng.randint(low, high or low)))


def base64_of(rng: random.Random, size: int) -> str:
    """The base64 of so many random bytes, padded."""
    return base64.b64encode(rng.randbytes(size)).decode()


def shaped(shape: str, rng: random.Random) -> str:
    """A text of a shape such as ``ghp_[A-Za-z0-9]{36}``: literal text, and classes with a count."""
    return _CLASS.sub(
        lambda m: some(rng, _alphabet(m["set"]), int(m["low"]), int(m["high"] or m["low"])), shape
    )


def _alphabet(written: str) -> str:
    """The characters of ``[A-Za-z0-9_-]``."""
    body, found, at = written[1:-1], "", 0
    while at < len(body):
        if at + 2 < len(body) and body[at + 1] == "-":
            found += "".join(map(chr, range(ord(body[at]), ord(body[at + 2]) + 1)))
            at += 3
        else:
            found += body[at]
            at += 1
    return found


def plain(rng: random.Random) -> str:
    """Letters of both cases with digits."""
    inner = list(
        some(rng, string.ascii_lowercase, 4, 6)
        + some(rng, string.ascii_uppercase, 2, 4)
        + some(rng, string.digits, 2, 5)
    )
    rng.shuffle(inner)
    return "".join(inner)


def symbols(rng: random.Random) -> str:
    """As people are told to make them, with symbols that need no quoting, now and then at the end."""
    middle = plain(rng)
    cut = rng.randint(2, len(middle) - 2)
    return (
        middle[:cut]
        + some(rng, "!#%^*_-+.~?", 1, 2)
        + middle[cut:]
        + rng.choice(["", "", "!", "!!", "#", "?"])
    )


def heavy(rng: random.Random) -> str:
    """Symbols that only stand in quotes, none of which is a quote or a backslash."""
    return "".join(
        rng.choice([plain, symbols])(rng)[:7] + some(rng, "@#$%^&*()[]{}<>;:,|/", 2, 5) for _ in range(2)
    )


def word(rng: random.Random) -> str:
    """A word with digits."""
    text = rng.choice(_WORDS) + str(rng.randint(1, 9999))
    return text.capitalize() if rng.random() < 0.4 else text


def phrase(rng: random.Random) -> str:
    """Four words."""
    return " ".join(rng.sample(_WORDS, 4))


def han(rng: random.Random) -> str:
    """Chinese characters with digits."""
    return some(rng, _HAN, 4, 7) + some(rng, string.digits, 3, 5)


def accented(rng: random.Random) -> str:
    """Letters beyond ASCII, sometimes an emoji, with digits."""
    return (
        some(rng, "äöüßéèñçøåžščłđ", 2, 3)
        + plain(rng)
        + rng.choice(["", "🔒", "🦊🌵", "ж", "ñ"])
        + some(rng, string.digits, 2)
    )


def wide(rng: random.Random) -> str:
    """Full-width letters and digits."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in plain(rng))


OF_A_LETTER: Final[dict[str, Callable[[random.Random], str]]] = {
    "p": plain,
    "s": symbols,
    "m": heavy,
    "w": word,
    "d": lambda rng: rng.choice(_WORDS),
    "l": lambda rng: some(rng, string.ascii_lowercase, 12, 20),
    "k": lambda rng: some(rng, ALNUM, 32, 40),
    "h": lambda rng: some(rng, HEX, rng.choice([32, 40, 64])),
    "b": lambda rng: base64_of(rng, rng.choice([24, 32, 33, 64])),
    "n": lambda rng: some(rng, string.digits, 6),
    "t": phrase,
    "z": han,
    "u": accented,
    "f": wide,
    "U": lambda rng: "-".join(some(rng, HEX, size) for size in (8, 4, 4, 4, 12)),
}


def filled(template: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A template with each ``§letter`` replaced by a value of that class, and those values."""
    values: list[str] = []

    def value(match: re.Match[str]) -> str:
        values.append(OF_A_LETTER[match[1]](rng))
        return values[-1]

    return re.sub(r"§([a-zU])", value, template), tuple(values)


def jwt(rng: random.Random, header: dict[str, str], signature_bytes: int) -> str:
    """A JSON web token with that header."""
    claims = {
        "sub": some(rng, string.digits, 10),
        "iat": rng.randint(10**9, 2 * 10**9),
        "name": "Ann Example",
    }
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in (header, claims)]
    return ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (*parts, rng.randbytes(signature_bytes))
    )


def armoured(
    rng: random.Random, kind: str, size: int, *, headers: str = "", width: int = 64
) -> tuple[str, list[str]]:
    """A PEM block, and the lines of it that are secret."""
    body = base64_of(rng, size)
    lines = [body[at : at + width] for at in range(0, len(body), width)]
    return f"-----BEGIN {kind}-----\n{headers}" + "\n".join(lines) + f"\n-----END {kind}-----", lines


def repeated(
    make: Callable[[random.Random], tuple[str, tuple[str, ...]]], seed: str, times: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a maker makes of the first so many seeds of a name."""
    for number in range(times):
        yield make(random.Random(f"{seed}/{number}"))
