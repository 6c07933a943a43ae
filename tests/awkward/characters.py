"""Every character that there is, of large blocks of like ones some."""

from collections.abc import Iterator

_LIKE = ((0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0x17000, 0x18CFF), (0x20000, 0x10FFFF))
_STEP = 997  # in them


def characters() -> Iterator[str]:
    """All code points from U+0000 to U+10FFFF, surrogates included, but of Han, Hangul syllables, Tangut and private use."""
    code = 0
    while code < 0x110000:
        yield chr(code)
        code += _STEP if any(first <= code <= last - _STEP for first, last in _LIKE) else 1
