"""How far a word may stand from a code that is typed or turned, and a remark from a password that nothing names."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

_REDACTOR = Redactor(Redact())
_APART = int(shipped("memd.redact.codes.typed_codes._CHARS_OF_APART"))
_CODE_BEFORE = int(shipped("memd.redact.codes.typed_codes._CHARS_BEFORE"))
_CODE_BEHIND = int(shipped("memd.redact.codes.typed_codes._CHARS_BEHIND"))
_REMARK_BEFORE = int(shipped("memd.redact.passwords.beside_a_remark._CHARS_BEFORE"))
_REMARK_BEHIND = int(shipped("memd.redact.passwords.beside_a_remark._CHARS_BEHIND"))
_MADE_OF = int(shipped("memd.redact.passwords.described._CHARS_OF_LINE"))
_MISSED = int(shipped("memd.redact.programs.shell_input._CHARS_OF_MISSED"))


def _filled(chars: int) -> str:
    """So many characters of short words, with a blank at both ends."""
    return (" " + "so " * chars)[: chars - 1] + " "


@pytest.mark.parametrize(
    ("text", "secret", "chars", "most"),
    [
        ("bancomat{}usa 4 0 7 2", "4 0 7 2", 20, _APART + 20),
        ("the padlock{}left 12 right 30 left 6", "left 12 right 30 left 6", 20, _CODE_BEFORE + 2),
        ("left 12 right 30 left 6{}for the padlock", "left 12 right 30 left 6", 20, _CODE_BEHIND + 2),
        ("the safe{}is 'acer' backwards, so recareca", "recareca", 20, _MADE_OF + 2),
        ("it's Bramble_Fog7{}says locked", "Bramble_Fog7", 20, _REMARK_BEFORE + 2),
        ("says locked{}it's Bramble_Fog7", "Bramble_Fog7", 20, _REMARK_BEHIND + 2),
        ("echo ZmxvcmFGYXVuYTk= | base64 -d{}for the admin", "ZmxvcmFGYXVuYTk=", 20, 100),
    ],
)
def test_a_word_tells_what_is_near_it(text: str, secret: str, chars: int, most: int) -> None:
    """And nothing that is farther away."""
    near, far = text.format(_filled(chars)), text.format(_filled(most))
    assert secret not in _REDACTOR.redact(near).text
    assert _REDACTOR.redact(far).text == far


def test_what_a_shell_got_instead_of_a_prompt_goes_from_both_lines() -> None:
    """The command that it did not find is what was meant for the prompt, unless the prompt is far."""
    text = "pi@attic.local's password: \n{}$ damson_Trifle8\nbash: damson_Trifle8: command not found"
    assert "damson" not in _REDACTOR.redact(text.format("")).text
    far = text.format("so it goes on\n" * (_MISSED // 14))
    assert "typed-too-late" not in [find.kind for find in _REDACTOR.finds(far)]
    assert "damson" in _REDACTOR.redact(far).text


def test_a_correction_alone_is_no_password() -> None:
    """A word that has the form of one is, and an ordinary word is not."""
    assert "Bramble" not in _REDACTOR.redact("*Bramble_Fog7\nsorry, typo").text
    assert _REDACTOR.redact("*tomorrow\nsorry, typo").text == "*tomorrow\nsorry, typo"
    assert _REDACTOR.redact("*Well-known\nsorry, typo").text == "*Well-known\nsorry, typo"
