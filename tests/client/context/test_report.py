from memd_client.context.bootstrap import MARK_CHARS, Ends, Limits, Missing, Unreadable, Whole, bootstrap
from memd_client.context.conversation import Message
from memd_client.context.report import ContextReport, as_detail, as_list, footer, report
from memd_client.tools import anthropic_tools, openai_tools
from tests.bounds import shipped

FILES = bootstrap(
    [
        Whole("AGENTS.md", "a" * 400),
        Whole("SOUL.md", "s" * 30_000),
        Ends("TOOLS.md", "t" * 20_000, "t" * 20_000, 104_857_600),
        Unreadable("IDENTITY.md", "permission denied"),
        Whole("USER.md", " "),
        Missing("HEARTBEAT.md"),
        Whole("MEMORY.md", "库" * 500),
    ],
    "main",
    Limits(total_chars=40_500),
)
MESSAGES = [
    Message(role="user", text="u" * 40),
    Message(role="assistant", text="a" * 80),
    Message(role="tool", text="t" * 4_000, tool="read", call="c1"),
    Message(role="tool", text="t" * 8_000, tool="exec", call="c2"),
    Message(role="user", images=1),
]


def measured() -> ContextReport:
    return report(
        window_tokens=200_000,
        instructions="i" * 400,
        workspace=FILES,
        tools=anthropic_tools(),
        messages=MESSAGES,
    )


def test_everything_is_measured_once() -> None:
    """The parts add up to the whole, in estimated tokens."""
    context = measured()
    assert context.instructions_tokens == 100
    assert context.files[0].tokens == (len("## AGENTS.md\n\n\n\n") + 400) / 4
    assert sum(file.chars for file in context.files) == len(FILES.text) - MARK_CHARS
    assert [(role.role, role.messages, role.tokens) for role in context.roles] == [
        ("user", 2, 2_010),
        ("assistant", 1, 20),
        ("tool", 2, 3_000),
    ]
    assert context.history_tokens == 5_030
    assert context.used_tokens == 100 + context.files_tokens + context.tools_tokens + 5_030


def test_the_tools_of_both_providers_measure_the_same() -> None:
    """Name, description and schema are what a model reads."""
    assert (
        report(window_tokens=0, tools=openai_tools()).tools
        == report(window_tokens=0, tools=anthropic_tools()).tools
    )
    first = measured().tools[0]
    assert first.name == "memory_search"
    assert min(first.description_chars, first.schema_chars) > 100


def test_a_list_tells_of_each_file_what_became_of_it() -> None:
    """Raw and injected sizes, and what is cut, missing, empty or unreadable."""
    lines = {line.split(":")[0].strip(): line for line in as_list(measured()).splitlines()}
    assert lines["AGENTS.md"] == "    AGENTS.md: 400 characters, ~104 tokens"
    assert "30,000 characters, cut: 20,0" in lines["SOUL.md"]
    assert "104,857,600 bytes, cut: " in lines["TOOLS.md"]
    assert lines["IDENTITY.md"].endswith("unreadable")
    assert lines["USER.md"].endswith("empty")
    assert lines["HEARTBEAT.md"].endswith("missing")
    assert lines["MEMORY.md"].endswith("500 characters, left out: the total was used up")
    assert "of 200,000 (" in lines["Context"]


def test_the_detail_has_every_tool_and_the_largest_results() -> None:
    """What could be done about a full window is at the top of each list."""
    text = as_detail(measured())
    assert text.startswith(as_list(measured()))
    assert text.index("memory_search: description") < text.index("By role:")
    assert text.index("exec (message 4): 8,000 characters, ~2,000 tokens") < text.index("read (message 3)")
    assert "user: 2 messages, 40 characters, 1 image, ~2,010 tokens" in text


def test_a_footer_is_one_line() -> None:
    """With the provider's own count where there is one, and our estimate where there is none."""
    context = measured()
    line = footer(context, reported_tokens=50_000)
    assert line.startswith("50,000 tokens of 200,000 (25 %) · workspace ~")
    assert "(3 files cut)" in line
    assert "\n" not in line
    assert footer(context).startswith(f"~{context.used_tokens:,} tokens of 200,000 (")


def test_nothing_is_no_error() -> None:
    """An empty window of unknown size can be told of too."""
    empty = report(window_tokens=0)
    assert empty.used_tokens == 0
    assert footer(empty).startswith("~0 tokens, window not known")
    assert as_detail(empty)


def test_odd_tools_are_measured_as_far_as_they_can_be() -> None:
    """A definition without a name or a schema counts what it has."""
    sizes = report(window_tokens=0, tools=[{}, {"name": None, "description": 5}, {"function": "x"}]).tools
    assert [size.name for size in sizes] == ["?"] * 3
    assert [size.schema_chars for size in sizes] == [0] * 3


def test_the_largest_results_are_listed() -> None:
    """So many, the largest first."""
    most = shipped("memd_client.context.report._LARGEST")
    messages = [
        Message(role="tool", text="t" * 400 * n, tool="read", call=f"c{n}") for n in range(1, most + 2)
    ]
    told = report(window_tokens=200_000, instructions="", workspace=FILES, tools=[], messages=messages)
    assert [one.place for one in told.results] == [*range(most + 1, 1, -1)]
