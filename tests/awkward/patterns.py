"""Regular expressions as people write them, some of which take for ever, and texts that make them."""

from hypothesis import strategies as st

_SIGNS = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        r"\w",
        r"\d",
        r"\s",
        ".",
        "[ab]",
        "[^b]",
        "[a-c1]",
        "-",
        " ",
        "密",
        r"\b",
        "^",
        "$",
        "(?=a)",
        "(?!b)",
        "A",
    ]
)
_COUNTS = st.sampled_from(
    [
        "*",
        "+",
        "?",
        "{2}",
        "{1,3}",
        "{0,2}",
        "{2,}",
        "{1,40}",
        "{1,200}",
        "*?",
        "+?",
        "*+",
        "++",
        "{1,9}+",
        "{3}",
    ]
)
_PARTS = st.recursive(
    _SIGNS,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}){}".format, inner, _COUNTS),
        st.builds("{}({}){}".format, inner, inner, _COUNTS),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}|{}|{}){}".format, inner, inner, inner, _COUNTS),
        st.builds("(?>{})".format, inner),
        st.builds("(?i:{})".format, inner),
        st.builds("(?P<secret>{})x".format, inner),
    ),
    max_leaves=6,
)
PATTERNS = st.builds("{}{}".format, _PARTS, st.sampled_from(["", "x", "!", "$", r"\b"])) | st.text(
    "ab|()*+?{}[]^$\\.,-19<>=!:#P&", max_size=12
)
"""Most of them right."""

PUMPED = st.builds(
    lambda before, unit, count, after: before + unit * count + after,
    st.text("ab1 -", max_size=4),
    st.text("abA1 -密", min_size=1, max_size=4),
    st.sampled_from([10, 40, 300]),
    st.sampled_from(["", "!", "x", "\x01", "b"]),
)
"""Lines in which something comes again and again before it ends otherwise."""
