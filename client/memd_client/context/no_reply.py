"""Recognises NO_REPLY, by which a model says that it has no reply, in a whole or a streamed reply.

A reply is silent if it begins with the token, whatever its case; blanks, quotation marks and the asterisks and
backticks of Markdown may stand before it. A longer word, such as NO_REPLYING or NO_REPLY_TO, is ordinary text.
"""

NO_REPLY = "NO_REPLY"

_BEFORE = " \t\r\n\f\v\u00a0\u3000\ufeff\u200b*`\"'"
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class NoReplyFilter:
    """Passes on a streamed reply unless it is silent.

    No character of a silent reply is passed on, however it is divided into chunks. Of other replies, only what may still
    become the token is held back: at most eight letters, and the blanks before them.

        no_reply = NoReplyFilter()
        for chunk in stream:
            show(no_reply.feed(chunk))
        show(no_reply.end())
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._word = ""  # the part that may be the token
        self._is_no_reply: bool | None = None  # None: not known yet

    @property
    def is_no_reply(self) -> bool:
        """Whether the reply is known to be silent; once True, it stays True."""
        return self._is_no_reply is True

    def feed(self, chunk: str) -> str:
        """Return the text that may be shown now; "" if none may."""
        if self._is_no_reply is not None:
            return "" if self._is_no_reply else chunk
        self._held.append(chunk)
        word = self._word + (chunk if self._word else chunk.lstrip(_BEFORE))
        self._word = word[: len(NO_REPLY) + 1]
        return self._decide(_verdict(self._word))

    def end(self) -> str:
        """Return the held-back text after the last chunk; "" if the reply is silent."""
        if self._is_no_reply is not None:
            return ""
        return self._decide(_is_token(self._word))

    def _decide(self, verdict: bool | None) -> str:
        if verdict is None:
            return ""
        self._is_no_reply = verdict
        held = "" if verdict else "".join(self._held)
        self._held.clear()
        return held


def is_no_reply(reply: str) -> bool:
    """Return whether a whole reply is silent."""
    no_reply = NoReplyFilter()
    no_reply.feed(reply)
    no_reply.end()
    return no_reply.is_no_reply


def _verdict(word: str) -> bool | None:
    """Return whether a reply with this beginning is silent; None if that depends on the rest."""
    if len(word) > len(NO_REPLY):
        return _is_token(word[: len(NO_REPLY)]) and word[len(NO_REPLY)] not in _WORD
    return None if _is_token(word, NO_REPLY[: len(word)]) else False


def _is_token(word: str, token: str = NO_REPLY) -> bool:
    # Length is compared too: an upper-cased ligature is several letters.
    return len(word) == len(token) and word.upper() == token
