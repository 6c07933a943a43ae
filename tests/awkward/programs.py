"""What other programs print or pass, nearly as they should: results of qmd, inputs of hooks, lines of a log."""

from hypothesis import strategies as st

from tests.awkward.streams import shuffled, spoilt
from tests.awkward.trees import ODD_JSON, Tree, as_json, mutated, tree_of

_RESULTS = [
    {
        "docid": "#21253b",
        "score": 0.56,
        "file": "qmd://cur-main/MEMORY.md",
        "line": 4,
        "title": "M",
        "snippet": "@@ -3,3 @@ (2 before)\n- one.\n- 二\n",
    },
    {"path": "memory/a.md", "collection": "notes", "startLine": 1, "body": "text"},
    {"displayPath": "/abs/b.md?index=x", "hash": "abcdef", "score": "0.5", "text": "x"},
]
_LISTS = [
    {"collections": [{"name": "notes", "path": "/w", "pattern": "**/*.md", "files": 3}]},
    {"notes": {"pwd": "/w", "mask": "*.md", "documents": 2}},
    ["notes", "more"],
]
_NOISE = st.sampled_from(
    [
        "",
        "\n",
        "Warning: [x] {y}\n",
        "\x1b[31mred\x1b[0m\n",
        "No results found.\n",
        "[",
        "{" * 300,
        "✓ Done (3)\n",
        "- a: b\n",
    ]
) | st.text(max_size=9)
_COUNTED = st.builds(
    "{}{}{}".format,
    st.sampled_from(["Indexed: ", "Vectors: ", "qmd ", "v", "  files: ", "notes (qmd://notes/)\n  files: "]),
    st.sampled_from(["3", "٣", "1.2.3", "9" * 30, "9" * 6000, "-1", "1,000", "²"]),
    st.sampled_from(
        [" new, 2 updated, 1 unchanged", "", " files", "\n", " new, " + "9" * 6000 + " updated, 0 unchanged"]
    ),
)


def _printed(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[str]:
    raw = st.builds(
        lambda before, tree, after: (
            before.encode("utf-8", "replace") + as_json(tree) + after.encode("utf-8", "replace")
        ),
        _NOISE,
        trees,
        _NOISE,
    )
    return spoilt(raw, most=1).map(lambda printed: printed.decode("utf-8", "replace"))


PRINTED = (
    _printed(mutated(st.lists(st.sampled_from(_RESULTS), max_size=3).map(tree_of), ODD_JSON))
    | _printed(mutated(st.sampled_from([{"results": _RESULTS}, *_LISTS]).map(tree_of), ODD_JSON))
    | st.lists(_COUNTED | _NOISE, max_size=5).map("\n".join)
)
"""Output of qmd, as its decoded text."""

_TOLD = {
    "session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": "which database?", "cwd": "/r", "user_prompt": "x",
    "transcript_path": "/r/t.jsonl", "message": {"text": "x"}, "conversation_id": 7,
}  # fmt: skip
HOOK_INPUTS = spoilt(mutated(st.just(_TOLD).map(tree_of), ODD_JSON).map(as_json), most=2)
"""Bytes on the standard input of a hook."""

_EVENTS = st.sampled_from(
    [
        {"timestamp": "2026-11-21T11:20:46.353468Z", "level": "info", "event": "sync.finished", "changed": 2, "agent": "main"},
        {"level": "error", "event": "config.reload_refused", "reason": "line 3: no", "exception": "Traceback\n  x"},
        {"event": "x.y", "values": {"a": [1, None, "b c"]}},
    ]
)  # fmt: skip
LOG_LINES = mutated(_EVENTS.map(tree_of), ODD_JSON).map(as_json) | st.binary(max_size=20)
LOGS = spoilt(
    shuffled(
        st.lists(
            st.builds(
                lambda line, end: line + end,
                LOG_LINES,
                st.sampled_from([b"\n"] * 4 + [b"", b"\r\n", b"\0\n"]),
            ),
            max_size=8,
        )
    ).map(b"".join),
    most=1,
)
"""Bytes of a log: torn lines, halves of two within each other, NUL characters of a crash."""

ARGUMENTS = mutated(
    st.sampled_from(
        [
            {"query": "which?", "maxResults": 6, "minScore": 0.3},
            {"path": "memory/a.md#L3-L9", "from": 3, "startLine": "4", "lines": 20.0},
        ]
    ).map(tree_of),
    ODD_JSON,
    most=4,
).map(as_json)
"""JSON that a model passes to a tool."""

ENVIRONMENTS = st.dictionaries(
    st.sampled_from(
        [
            "MEMD_CONFIG",
            "MEMD_STATE_DIR",
            "MEMD_SOCKET",
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "HOME",
        ]
    ),
    # What os.environ can hold: no NUL, and bytes that are no UTF-8 as surrogates.
    st.sampled_from(
        [
            "",
            "~",
            "~/",
            "~//x",
            "~bob",
            "~/../..",
            "/",
            "//",
            "/x/",
            "x/y",
            "..",
            ".",
            "\udcff",
            "/\udcff/x",
            "/" + "a" * 300,
            "/a\nb",
            " ",
            "日记",
        ]
    )
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)
"""Variables that say where things are."""
