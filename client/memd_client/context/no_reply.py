"""NO_REPLY: how a model says that there is nothing to deliver, recognised while it streams.

A reply is silent if it begins with the token, whatever its case; blanks, quotation marks and the asterisks and
backticks of Markdown may stand before it. A longer word, such as NO_REPLYING or NO_REPLY_TO, is ordinary text.
"""

NO_REPLY = "NO_REPLY"

_BEFORE = " \t\r\n\f\v\u00a0\u3000\ufeff\u200b*`\"'"
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class NoReplyFilter:
    """Passes a streamed reply on, unless it is silent.

    Not a character of a silent reply gets out, however it is divided into chunks. Of any other, only what could still
    become the token is held back, eight letters at most, and whatever blanks stand before them.

        no_reply = NoReplyFilter()
        for chunk in stream:
            show(no_reply.feed(chunk))
        show(no_reply.end())
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._word = ""  # what of it could be the token
        self._is_no_reply: bool | None = None  # None: nobody knows yet

    @property
    def is_no_reply(self) -> bool:
        """Whether the reply is known to be silent. It cannot change once it is true."""
        return self._is_no_reply is True

    def feed(self, chunk: str) -> str:
        """What may be shown now; empty where nothing may."""
        if self._is_no_reply is not None:
            return "" if self._is_no_reply else chunk
        self._held.append(chunk)
        word = self._word + (chunk if self._word else chunk.lstrip(_BEFORE))
        self._word = word[: len(NO_REPLY) + 1]
        return self._decide(_verdict(self._word))

    def end(self) -> str:
        """What was held back and turned out to be text, after the last chunk."""
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
    """Whether a whole reply is silent."""
    no_reply = NoReplyFilter()
    no_reply.feed(reply)
    no_reply.end()
    return no_reply.is_no_reply


def _verdict(word: str) -> bool | None:
    """Whether a reply that begins so is silent; None where that depends on what comes."""
    if len(word) > len(NO_REPLY):
        return _is_token(word[: len(NO_REPLY)]) and word[len(NO_REPLY)] not in _WORD
    return None if _is_token(word, NO_REPLY[: len(word)]) else False


def _is_token(word: str, token: str = NO_REPLY) -> bool:
    # Length is compared too: an upper-cased ligature is several letters.
    return len(word) == len(token) and word.upper() == token
