"""Ten megabytes of texts without secrets, of which not one character may go: ``python -m tests.redact.bulk``.

They are drawn by chance each time: nothing of them is kept. What is found is printed with its rule.
"""

import base64
import random
import string
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Final

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from memd.redact.rule_set import explained
from tests.redact import innocent

LENGTH: Final = 1_000_000
"""Characters of each kind."""
_HEX: Final = "0123456789abcdef"
_BASE64: Final = string.ascii_letters + string.digits + "+/"
_NAMES: Final = (
    "left-pad", "@babel/core", "serde_json", "numpy", "github.com/pkg/errors", "token-stream", "keyv", "secretstorage",
    "password-prompt", "auth-header", "cookie", "jsonwebtoken", "key-encoder", "pbkdf2", "session-key", "pin-utils",
)  # fmt: skip
_VARIABLES: Final = (
    "token",
    "key",
    "secret",
    "e",
    "t",
    "n",
    "auth",
    "pass",
    "cookie",
    "password",
    "pin",
    "code",
)
_EVENTS: Final = (
    "token refreshed", "key rotated", "password changed", "auth ok", "session started", "cache key miss", "secret mounted",
    "code 200", "login from", "pin-utils loaded", "credentials expired",
)  # fmt: skip


def _some(rng: random.Random, signs: str, length: int) -> str:
    return "".join(rng.choices(signs, k=length))


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _talk(rng: random.Random) -> str:
    return innocent.chat(rng, 20)


def _log(rng: random.Random) -> str:
    event, number = rng.choice(_EVENTS), rng.randrange(10**6)
    return rng.choice(
        (
            f"2026-03-{rng.randint(1, 28):02}T09:{rng.randint(10, 59)}:11.{number:06}Z INFO worker[{number}] {event} request_id={_uuid(rng)}\n",
            f'10.0.{rng.randrange(255)}.{rng.randrange(255)} - - [09/Feb/2026:10:11:12 +0000] "GET /assets/app.{_some(rng, _HEX, 20)}.js HTTP/1.1" 200 {number}\n',
            f'{{"level":"info","ts":{number}.5,"trace_id":"{_some(rng, _HEX, 32)}","span_id":"{_some(rng, _HEX, 16)}","msg":"{event}"}}\n',
            f"Feb  9 10:11:12 host sshd[{number}]: Accepted publickey for ann from 10.0.0.7 port {number % 60000} ssh2: ED25519 SHA256:{_some(rng, _BASE64, 43)}\n",
        )
    )


def _digests(rng: random.Random) -> str:
    return rng.choice(
        (
            f"{_some(rng, _HEX, rng.choice((32, 40, 64, 128)))}  src/file{rng.randrange(999)}.py\n",
            f"commit {_some(rng, _HEX, 40)}\n\n    Merge {_some(rng, _HEX, 7)} into {_some(rng, _HEX, 9)}\n",
            f"index {_some(rng, _HEX, 11)}..{_some(rng, _HEX, 11)} 100644\n",
            f"image: registry.example.com/app@sha256:{_some(rng, _HEX, 64)}\n",
            f'ETag: "{_some(rng, _HEX, 32)}"\n',
        )
    )


def _identifiers(rng: random.Random) -> str:
    return rng.choice(
        (
            f"{_uuid(rng)}\n",
            f'{{"id": "{_uuid(rng)}", "parent": "{_uuid(rng)}"}}\n',
            f"urn:uuid:{_uuid(rng)} done\n",
        )
    )


def _lock_file(rng: random.Random) -> str:
    name, version = rng.choice(_NAMES), f"{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)}"
    digest = base64.b64encode(rng.randbytes(64)).decode()
    return rng.choice(
        (
            f'    "node_modules/{name}": {{\n      "version": "{version}",\n      "resolved": "https://registry.npmjs.org/{name}/-/{name}-{version}.tgz",\n      "integrity": "sha512-{digest}"\n    }},\n',
            f'"{name}@^{version}":\n  version "{version}"\n  resolved "https://registry.yarnpkg.com/{name}/-/{name}-{version}.tgz#{_some(rng, _HEX, 40)}"\n  integrity sha512-{digest}\n',
            f'[[package]]\nname = "{name}"\nversion = "{version}"\nchecksum = "{_some(rng, _HEX, 64)}"\n',
            f"{name} v{version} h1:{_some(rng, _BASE64, 43)}=\n{name} v{version}/go.mod h1:{_some(rng, _BASE64, 43)}=\n",
            f"{name}=={version} \\\n    --hash=sha256:{_some(rng, _HEX, 64)} \\\n    --hash=sha256:{_some(rng, _HEX, 64)}\n",
        )
    )


def _picture(rng: random.Random) -> str:
    head = rng.choice(
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\xff\xd8\xff\xe0\0\x10JFIF", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ")
    )
    said = base64.b64encode(head + rng.randbytes(rng.randint(500, 6000))).decode()
    return f"![a picture](data:image/png;base64,{said})\n"


def _minified(rng: random.Random) -> str:
    name, other = rng.choice(_VARIABLES), rng.choice(_VARIABLES)
    return rng.choice(
        (
            f"function {name}(e,t){{return {other}.call(this,e)||t.{name}}}",
            f'var {name}=n({rng.randrange(9999)}),{other}={name}.{other}||"";',
            f"{name}:{{{other}:!0,type:String,default:null}},",
            f'e.exports={{{name}:"{name}",{other}:function(){{return t("{other}.{name}")}}}};',
            f'!function(e){{e.{name}=e.{other}=void 0;var r="{name}-{other}";e[r]={rng.randrange(999)}}}(t);',
            f'case"{name}":{other}=e.{name};break;',
        )
    ) + ("\n" if rng.random() < 0.01 else "")


def _dna(rng: random.Random) -> str:
    return f">seq{rng.randrange(10**6)} chromosome {rng.randrange(22)}\n" + "".join(
        _some(rng, "ACGT", 60) + "\n" for _ in range(rng.randint(1, 12))
    )


def _chess(rng: random.Random) -> str:
    squares = [
        f"{rng.choice(('', 'N', 'B', 'R', 'Q', 'K', 'Nx', 'Bx', 'ex'))}{rng.choice('abcdefgh')}{rng.randint(1, 8)}"
        for _ in range(60)
    ]
    moves = " ".join(
        f"{number + 1}. {white} {black}"
        for number, (white, black) in enumerate(zip(squares[::2], squares[1::2], strict=True))
    )
    board = "/".join(_some(rng, "rnbqkpRNBQKP12345678", rng.randint(1, 8)) for _ in range(8))
    return f'[FEN "{board} w KQkq - 0 1"]\n{moves} 1/2-1/2\n'


KINDS: Final[dict[str, Callable[[random.Random], str]]] = {
    "talk, programs and logs": _talk,
    "logs": _log,
    "digests": _digests,
    "identifiers": _identifiers,
    "lock files": _lock_file,
    "pictures in base64": _picture,
    "minified programs": _minified,
    "DNA": _dna,
    "moves of chess": _chess,
    "all of them in turn": lambda rng: rng.choice(
        (_talk, _log, _digests, _lock_file, _picture, _minified, _dna, _chess)
    )(rng),
}
"""How a piece of each kind is drawn."""


def found(kind: str, length: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """What is taken for a secret in so many characters of a kind, with the name of its rule."""
    rng = random.Random(f"{kind}/{seed}")
    redactor = Redactor(Redact())
    size = 0
    while size < length:
        text = ""
        while len(text) < min(100_000, length):
            text += KINDS[kind](rng)
        size += len(text)
        for find in redactor.finds(text):
            yield text[max(0, find.start - 40) : find.end], explained(find)[0]


def main() -> int:
    """Print what was found in each kind, and how much there was of it."""
    wrong = 0
    for kind in KINDS:
        finds = list(found(kind, LENGTH))
        wrong += len(finds)
        sys.stdout.write(f"{kind}: {LENGTH:,} characters, {len(finds)} finds\n")
        for text, rule in finds[:10]:
            sys.stdout.write(f"    {rule}: {text!r}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
