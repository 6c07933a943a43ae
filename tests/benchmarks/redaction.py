"""How long it takes to take the secrets out of a text: usual ones, and those that are made to take long."""

import time
from collections.abc import Iterator
from random import Random

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.redact import innocent
from tests.redact.corpus import samples

ROUNDS = 3
LARGE = 8 * 1024 * 1024  # bytes: the longest line of a transcript that is read
HOSTILE: dict[str, str] = {
    "password=": "password=",
    "password='": "password='a ",
    "password of words": "password for a b c d e ",
    "://": "://a:b",
    "beginnings of keys": "-----BEGIN PRIVATE KEY-----\n",
    "lines of a key": "-----BEGIN PRIVATE KEY-----" + "\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 100,
    "eyJ": "eyJhbGciOi-",
    "sk-": "sk-aaaaaaaaaaaaaaaaaaa-",
    "密码": "密码我已经",
    "one letter": "a",
    "backslashes": "\\",
    "quotes": "key=\"'",
    "spaces": " " * 50 + "token",
    "cookie": "Cookie: a=b; c",
    "bearer": "Bearer abcdef-",
    "digits": "123456789:AA",
    "marks": "[REDACTED:password]",
    "seed phrase": "seed phrase word word word ",
    "keys of keys": "key=",
    "commands": "mysql -p",
    "flags": "mysql -p ",
    "headings": "password,password\n",
    "said before": "a1b2c3是密码",
    "digest": "Authorization: Digest ",
    "blanks": "password" + " " * 200,
    "signs without a width": "password\u200b",
}
"""What is repeated to make a text on which a careless pattern would take the square of its length."""


def measure() -> Iterator[Figure]:
    """Megabytes a second stand beside the times, which are those of the processor: nothing here waits."""
    redactor = Redactor(Redact())
    talk = innocent.chat(Random(1), 60_000)
    yield _figure("redacting talk and programs", redactor, talk)
    secrets = "\n".join(sample.text for sample in samples(seed=1))
    yield _figure("redacting nothing but secrets", redactor, secrets)
    copies = LARGE // len(talk.encode()) + 1
    yield _figure("redacting 8 MiB at once", redactor, talk * copies, rounds=1)
    lines = talk.split("\n")
    messages = ["\n".join(lines[at : at + 8]) for at in range(0, len(lines), 8)]
    took = Samples()
    for message in messages[:2000]:
        began = time.process_time()
        redactor.redact(message)
        took.append(time.process_time() - began)
    size = sum(len(message.encode()) for message in messages[:2000]) / 1e6
    yield milliseconds("redacting a message", took, note=f"{size / sum(took):.1f} MB/s")
    worst, worst_rate, growth = "", float("inf"), 0.0
    for name, piece in HOSTILE.items():
        short, long = (piece * (size // len(piece)) for size in (50_000, 200_000))
        first, second = _seconds(redactor, short), _seconds(redactor, long)
        rate = len(long.encode()) / 1e6 / second
        growth = max(growth, second / first)
        if rate < worst_rate:
            worst, worst_rate = name, rate
    yield Figure(
        name="redacting the worst of hostile texts, a MB",
        unit="ms",
        memd=1000 / worst_rate,
        note=f"{worst}: {worst_rate:.2f} MB/s; 4 times the length took {growth:.1f} times as long at most",
    )


def _figure(name: str, redactor: Redactor, text: str, *, rounds: int = ROUNDS) -> Figure:
    samples_taken = Samples()
    for _ in range(rounds):
        began = time.process_time()
        redactor.redact(text)
        samples_taken.append(time.process_time() - began)
    size = len(text.encode()) / 1e6
    return milliseconds(name, samples_taken, note=f"{size:.1f} MB, {size / samples_taken.median:.1f} MB/s")


def _seconds(redactor: Redactor, text: str) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        redactor.redact(text)
        best = min(best, time.process_time() - began)
    return best
