"""What a text must be before the C engine of the bundled model may see it."""

import unicodedata

# The engine reserves twelve characters for each character of three bytes. This one, the salutation of the Prophet
# in a single sign, becomes eighteen, and ten of them in a row write past the end of the buffer.
_SALUTATION = "\ufdfa"
_SALUTATION_SPELLED = unicodedata.normalize("NFKC", _SALUTATION)


def fit(text: str, max_bytes: int) -> str:
    """The head of a text that UTF-8 carries in so many bytes, whole characters only; a lone surrogate becomes "?"."""
    head = text[:max_bytes].encode("utf-8", "replace")
    return head[:max_bytes].decode("utf-8", "ignore")


def clean(text: str, max_bytes: int) -> str:
    """The head of a text, free of what crashes the engine, ends the text early, or escapes its tokenizer.

    - NUL goes: the engine takes a C string, which would end there.
    - U+FDFA is spelled out: ten of them overflow a buffer of the engine.
    - Letters and their accents are put together (NFC), as in the text the model was trained on. The engine's
      tokenizer looks at single characters; a Vietnamese sentence in NFD has a cosine of 0.86 with itself in NFC.
    - The size is bounded, since one call of the engine cannot be interrupted: 1 MB takes minutes.

    Args:
        text: Anything, lone surrogates included.
        max_bytes: Of the result, in UTF-8.
    """
    head = fit(text, max_bytes).replace("\0", "")
    spelled = unicodedata.normalize("NFC", head).replace(_SALUTATION, _SALUTATION_SPELLED)
    return fit(spelled, max_bytes)
