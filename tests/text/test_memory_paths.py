"""The rules about names: which paths are memory, and what the index calls them."""

import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.text.memory_paths import (
    ExcludeGlobs,
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    admits,
    admits_file,
    admits_notes,
    descends,
    describes_owner,
    exclude_of,
    excluded_in,
    find_place,
    has_control,
    is_curated,
    is_for_owner,
    is_markdown,
    is_plain_note,
    is_too_deep,
    is_under,
    is_under_any,
    is_utf8,
    name_of,
    only_file,
    parts_below,
    prefix_of,
    session_name,
)
from memd.text.transcript_files import Layout
from tests.bounds import shipped
from tests.table import table

HOME = Path("/home/ann/.openclaw/workspace")
VAULT = Path("/home/ann/vault")
WORKSPACE = Workspace(HOME)
TREE = ExtraDirectory(VAULT)
FILE = SingleFile(Path("/home/ann"), "todo.md")
CHATS = SessionPaths(Path("/home/ann/chats"), "chats", "plain", exclude=exclude_of(["drafts/"]))
NFC = unicodedata.normalize("NFC", "café")
NFD = unicodedata.normalize("NFD", "café")


def parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


@table(
    ("path", "belongs"),
    [
        ("MEMORY.md", True),
        ("memory.md", True),
        ("Memory.MD", True),
        ("USER.md", True),
        ("README.md", False),
        ("MEMORY.txt", False),
        ("memory/2026-01-02.md", True),
        ("memory/a/b/c.md", True),
        ("memory/NOTES.MD", True),
        ("memory/notes.markdown", False),
        ("memory/notes.md.bak", False),
        ("memory/md", False),
        ("Memory/notes.md", False),
        ("notes/a.md", False),
        ("memory/.hidden.md", False),
        ("memory/.obsidian/a.md", False),
        ("memory/node_modules/pkg/README.md", False),
        ("memory/x/.git/a.md", False),
        ("memory/venv/a.md", False),
        ("memory/x/site-packages/a.md", False),
        ("memory/__pycache__/a.md", False),
        ("memory/../MEMORY.md", False),
        ("memory/./a.md", False),
        ("memory//a.md", False),
        ("memory/a\nb.md", False),
        ("memory/a\0.md", False),
        ("memory/a\udcff.md", False),
        ("memory/d\udcff/a.md", False),
        ("memory/日记.md", True),
        ("memory/" + "d/" * 70 + "a.md", False),
    ],
)
def test_workspace_admits(path: str, belongs: bool) -> None:
    """A workspace holds its curated files and the Markdown below memory/, nothing else."""
    assert admits(WORKSPACE, parts(path)) is belongs


@pytest.mark.parametrize(
    ("path", "belongs"),
    [
        ("a.md", True),
        ("deep/er/a.md", True),
        ("memory.md", True),
        (".trash/a.md", False),
        ("x/node_modules/a.md", False),
        ("a.txt", False),
    ],
)
def test_tree_admits(path: str, belongs: bool) -> None:
    """An extra directory holds every Markdown file that is not hidden or somebody's package."""
    assert admits(TREE, parts(path)) is belongs


def test_single_file_admits_itself_alone() -> None:
    """An extra file is that file, whatever Unicode form it is asked for in."""
    assert admits(FILE, ("todo.md",))
    assert not admits(FILE, ("other.md",))
    assert not admits(FILE, ("todo.md", "todo.md"))
    assert admits(SingleFile(Path("/d"), f"{NFD}.md"), (f"{NFC}.md",))


def test_a_hidden_file_that_was_named_is_admitted() -> None:
    """A person who names a hidden file means it."""
    assert admits(SingleFile(Path("/home/ann"), ".plan.md"), (".plan.md",))


def test_nothing_is_no_file() -> None:
    """The root itself is no file."""
    assert not admits(TREE, ())


@pytest.mark.parametrize(
    ("root", "path", "reaches"),
    [
        (WORKSPACE, "memory", True),
        (WORKSPACE, "memory/projects", True),
        (WORKSPACE, "src", False),
        (WORKSPACE, "memory/.obsidian", False),
        (TREE, "src", True),
        (TREE, "src/node_modules", False),
        (TREE, "venv", False),
        (FILE, "src", False),
    ],
)
def test_descends(root: Root, path: str, reaches: bool) -> None:
    """Directories without notes are not entered."""
    assert descends(root, parts(path)) is reaches


@pytest.mark.parametrize("root", [WORKSPACE, TREE, FILE])
def test_descends_into_the_root(root: Root) -> None:
    """Each root is entered."""
    assert descends(root, ())


@table(
    ("glob", "path", "excluded"),
    [
        ("drafts", "drafts/a.md", True),
        ("drafts", "x/drafts/y/a.md", True),
        ("drafts", "drafts.md", False),
        ("drafts.md", "x/drafts.md", True),
        ("*.tmp.md", "x/a.tmp.md", True),
        ("*.tmp.md", "x/a.md", False),
        ("drafts/", "drafts/a.md", True),
        ("drafts/", "x/drafts/a.md", True),
        ("a.md/", "a.md", False),
        ("x/drafts", "x/drafts/a.md", True),
        ("x/drafts", "y/x/drafts/a.md", False),
        ("x/drafts/", "x/drafts/a.md", True),
        ("x/*.md", "x/a.md", True),
        ("x/*.md", "x/y/a.md", False),
        ("x/**", "x/y/a.md", True),
        ("x/**", "xy/a.md", False),
        ("x/**/*.md", "x/a.md", True),
        ("x/**/*.md", "x/y/z/a.md", True),
        ("**/private/**", "private/a.md", True),
        ("**/private/**", "x/private/a.md", True),
        ("**/private/**", "x/private.md", False),
        ("**/a.md", "a.md", True),
        ("x/**/z", "x/y/z/a.md", True),
        ("**", "a.md", True),
        ("2026-??-*.md", "2026-01-02.md", True),
        ("2026-??-*.md", "2026-1-2.md", False),
        ("[ab].md", "a.md", True),
        ("[!ab].md", "a.md", False),
        ("[!ab].md", "c.md", True),
        ("[a-c].md", "b.md", True),
        ("[c-a].md", "b.md", False),
        ("[]].md", "].md", True),
        ("[.md", "[.md", True),
        ("x[^y.md", "x[^y.md", True),
        ("a+b(c).md", "a+b(c).md", True),
        ("a.md", "aXmd", False),
        ("A.md", "a.md", False),
        ("x/a**z.md", "x/abcz.md", True),
        ("a**z.md", "ab/cz.md", True),
        ("x/**draft*.md", "x/drafts/my-draft-1.md", True),
        ("x/**draft*.md", "x/drafts/mine.md", False),
        ("x/**private*/a.md", "x/a/private1/private2/a.md", True),
        ("x/**b*c**d*.md", "x/b/bc/d/de.md", True),
        ("x/**b*c**d*.md", "x/b/c/d/de.md", False),
        ("./x/", "x/a.md", True),
        ("x//y/", "x/y/a.md", True),
        ("x/./y/", "x/y/a.md", True),
        ("./x", "y/x/a.md", False),
        ("./", "a.md", False),
        ("*a*b*.md", "xaxbx.md", True),
        ("*a*b*.md", "xbxax.md", False),
        ("*ab*ab.md", "abab.md", True),
        ("*ab*ab.md", "abxab.md.md", False),
        ("a*/b*/c*.md", "a1/b2/c3.md", True),
        ("", "a.md", False),
        ("/", "a.md", False),
        ("/home/ann/vault/x/**", "x/a.md", True),
        ("/home/ann/vault/x", "x/a.md", True),
        ("/home/ann/*/x/a.md", "x/a.md", True),
        ("/home/ann/other/**", "x/a.md", False),
        ("ann", "x/a.md", False),
        (NFD, f"{NFC}/a.md", True),
    ],
)
def test_exclude(glob: str, path: str, excluded: bool) -> None:
    """Globs leave files and whole directories out."""
    root = ExtraDirectory(VAULT, exclude_of([glob]))
    assert admits(root, parts(path)) is (not excluded and path.endswith(".md"))


def test_globs_are_matched_with_names_of_the_index() -> None:
    """Relative ones with what is in a workspace, absolute ones with what is elsewhere."""
    exclude = exclude_of(["drafts/**", "/home/ann/vault/z/**"])
    assert [
        name
        for name in (
            "drafts/a.md",
            "a.md",
            "/home/ann/vault/z/a.md",
            "/home/ann/vault/a.md",
            "home/ann/vault/z/a.md",
        )
        if exclude.matches(name)
    ] == ["drafts/a.md", "/home/ann/vault/z/a.md"]
    assert not ExcludeGlobs().matches("a.md")
    assert not exclude_of(["drafts/**"]).matches("/home/ann/vault/z/a.md")
    assert exclude_of(["/home/ann/vault/z/**"]).matches("/home/ann/vault/z/a.md")
    assert not exclude_of(["/home/ann/vault/z/**"]).matches("drafts/a.md")


@pytest.mark.parametrize(
    ("root", "name", "expected"),
    [
        (FILE, "/home/ann/todo.md", False),
        (msgspec.structs.replace(FILE, is_owners=True), "/home/ann/todo.md", True),
        (msgspec.structs.replace(FILE, file="USER.md"), "/home/ann/USER.md", True),
        (TREE, "/home/ann/vault/GEMINI.md", True),
        (TREE, "/home/ann/vault/todo.md", False),
    ],
)
def test_a_note_is_its_owners_by_its_name_or_by_the_way_to_it(root: Root, name: str, expected: bool) -> None:
    """Groups do not see it."""
    assert is_for_owner(root, name) is expected


def test_a_root_is_a_file_or_a_directory() -> None:
    """Of transcripts, too."""
    one = SessionPaths(VAULT, "chats", "plain", file="one.jsonl")
    assert [only_file(root) for root in (WORKSPACE, TREE, FILE, CHATS, one)] == [
        None,
        None,
        "todo.md",
        None,
        "one.jsonl",
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_a_directory_is_too_deep_for_the_bytes_of_its_path(more: int) -> None:
    """Of a path with the name of a file, which the system takes no longer."""
    root, many = ExtraDirectory(Path("/r")), (shipped("memd.text.memory_paths._MAX_BYTES") - 22) // 4 + more
    parts = tuple("🪁" * (many // 20 + (number < many % 20)) for number in range(20))
    assert is_too_deep(root, parts) is bool(more)


@pytest.mark.parametrize("depth", [63, 64, 65])
def test_a_directory_is_too_deep_only_for_its_depth(depth: int) -> None:
    """What is not entered anyway is not."""
    parts = ("d",) * depth
    assert is_too_deep(TREE, parts) is not descends(TREE, parts)
    assert is_too_deep(TREE, parts) is (depth >= 64)
    assert not is_too_deep(TREE, (*parts[:-1], ".git"))


@pytest.mark.parametrize(
    ("layout", "parts", "identity", "name"),
    [
        ("opencode", ("opencode.db",), "ses_1", "sessions/x/ses_1.jsonl"),
        ("opencode", ("opencode.db",), "../ses_1", None),
        ("opencode", ("opencode.db",), "a\nb", None),
        ("opencode", ("opencode.db",), "", None),
        ("opencode", ("other.db",), "ses_1", None),
        ("openclaw", ("main", "agent", "openclaw-agent.sqlite"), "daily", "sessions/x/daily.jsonl"),
        ("openclaw", ("main", "agent", "openclaw-agent.sqlite"), f"{NFD}", f"sessions/x/{NFC}.jsonl"),
        ("openclaw", ("main", "agent", "openclaw-agent.sqlite"), "a/b", None),
        ("openclaw", ("work", "agent", "openclaw-agent.sqlite"), "daily", "sessions/x/work/daily.jsonl"),
        ("openclaw", ("main", "sessions", "openclaw-agent.sqlite"), "daily", None),
    ],
)
def test_a_session_in_a_database_has_a_name_of_its_id(
    layout: Layout, parts: tuple[str, ...], identity: str, name: str | None
) -> None:
    """One that makes no name is not indexed."""
    assert session_name(SessionPaths(VAULT, "x", layout), parts, identity) == name


def test_exclude_in_the_workspace() -> None:
    """For the workspace a glob with a slash is one against the path in the index."""
    root = Workspace(HOME, exclude_of(["memory/private/**", "USER.md"]))
    assert not admits(root, parts("memory/private/a.md"))
    assert not descends(root, parts("memory/private"))
    assert not admits(root, ("USER.md",))
    assert admits(root, ("MEMORY.md",))
    assert admits(root, parts("memory/a.md"))


def test_any_of_many_globs_excludes() -> None:
    """One matching glob is enough."""
    exclude = exclude_of(["x", "y/", "/home/ann/vault/z"])
    assert [
        admits(ExtraDirectory(VAULT, exclude), parts(path))
        for path in ("x/a.md", "y/a.md", "z/a.md", "w/a.md")
    ] == [
        False,
        False,
        False,
        True,
    ]


def test_many_stars_are_quick() -> None:
    """A glob with many stars is decided at once, however long the name is that does not match."""
    exclude = exclude_of(["*a*a*a*a*a*a*a*b"])
    assert admits(ExtraDirectory(VAULT, exclude), ("a" * 240 + ".md",))


@settings(deadline=None)
@given(
    st.text(alphabet="ab*?[]!-^\\/.~&|+", max_size=12), st.text(alphabet="ab[]!-^\\.", min_size=1, max_size=8)
)
def test_every_glob_can_be_matched(glob: str, name: str) -> None:
    """No glob a person may type is an error."""
    admits(ExtraDirectory(VAULT, exclude_of([glob])), (f"{name}.md",))


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        (WORKSPACE, "memory/a.md", "memory/a.md"),
        (WORKSPACE, f"memory/{NFD}.md", f"memory/{NFC}.md"),
        (TREE, "x/a.md", "/home/ann/vault/x/a.md"),
        (FILE, "todo.md", "/home/ann/todo.md"),
        (ExtraDirectory(Path("/")), "a.md", "/a.md"),
        (ExtraDirectory(Path("/v") / NFD), "a.md", f"/v/{NFC}/a.md"),
    ],
)
def test_name_leads_back_to_its_place(root: Root, path: str, name: str) -> None:
    """A name in the index is in form NFC, and leads back to its root."""
    assert name_of(root, parts(path)) == name
    assert find_place(name, [root]) == (root, parts(unicodedata.normalize("NFC", path)))


@table(
    "name",
    [
        "",
        "memory",
        "memory/",
        "MEMORY.md/",
        "./MEMORY.md",
        "memory/../MEMORY.md",
        "memory/../../../../etc/passwd.md",
        "../memory/a.md",
        "memory//a.md",
        "memory/a.md/",
        "memory/.hidden/a.md",
        "memory/a.txt",
        "memory/a.md\0",
        "memory/\0.md",
        f"memory/{NFD}.md",
        "Memory/a.md",
        str(HOME / "memory/a.md"),
        "/etc/passwd.md",
        "/home/ann/vault",
        "/home/ann/vault/",
        "/home/ann/vault/../secret.md",
        "/home/ann/vault//a.md",
        "//home/ann/vault/a.md",
        "/home/ann/vaulted/a.md",
        "/home/ann/vault/.git/a.md",
        "/home/ann/todo.md.md",
        "/home/ann/other.md",
        "home/ann/todo.md",
        "vault/a.md",
        "a.md",
    ],
)
def test_no_other_name_leads_anywhere(name: str) -> None:
    """A name that the index cannot hold has no place."""
    assert find_place(name, [WORKSPACE, TREE, FILE]) is None


def test_the_root_that_admits_is_found() -> None:
    """A root inside a hidden directory of another one is found behind it."""
    inner = ExtraDirectory(VAULT / ".inner")
    assert find_place("/home/ann/vault/.inner/a.md", [TREE, inner]) == (inner, ("a.md",))


@pytest.mark.parametrize(
    ("root", "prefix"), [(WORKSPACE, ""), (TREE, "/home/ann/vault"), (FILE, "/home/ann/todo.md")]
)
def test_prefix(root: Root, prefix: str) -> None:
    """All names of a root lie under its prefix."""
    assert prefix_of(root) == prefix


@pytest.mark.parametrize(
    ("name", "prefix", "under"),
    [
        ("memory/a.md", "", True),
        ("/v/a.md", "", False),
        ("/v/a.md", "/v", True),
        ("/vw/a.md", "/v", False),
        ("/v/a.md", "/", True),
        ("memory/a.md", "/", False),
        ("memory/a.md", "memory", True),
        ("memory/a.md", "memory/a.md", True),
        ("memory.md", "memory", False),
        ("memory/a/b.md", "memory/a", True),
    ],
)
def test_under(name: str, prefix: str, under: bool) -> None:
    """A prefix ends where a part of the path ends."""
    assert is_under(name, prefix) is under
    assert is_under_any(name, frozenset({prefix, "nowhere"})) is under


def test_under_no_prefix() -> None:
    """Nothing lies under none."""
    assert not is_under_any("memory/a.md", frozenset())


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("/home/ann/vault", ()),
        ("/home/ann/vault/a/b.md", ("a", "b.md")),
        ("/home/ann/vaulted/a.md", None),
        ("/home/ann", None),
    ],
)
def test_parts_below(path: str, below: tuple[str, ...] | None) -> None:
    """A path is below a root part by part, not letter by letter."""
    assert parts_below(TREE, Path(path)) == below


@pytest.mark.parametrize(
    ("name", "curated"),
    [
        ("MEMORY.md", True),
        ("user.md", True),
        ("/v/ws/Memory.MD", True),
        ("memory/USER.md", True),
        ("memory/a.md", False),
        ("memory/my-user.md", False),
        ("MEMORY.md/a.md", False),
        ("MEMORY.sync-conflict-20261123-161318-BTMRC5A.md", True),
        ("/v/ws/User - Copy (2).md", True),
        ("memory/MEMORY副本.md", True),
        ("memory/memory-notes.md", False),
    ],
)
def test_curated(name: str, curated: bool) -> None:
    """The owner's own files are known by their names, wherever they lie."""
    assert is_curated(name) is curated
    assert describes_owner(name) is curated


@pytest.mark.parametrize(
    "name",
    [
        "/home/li/.gemini/GEMINI.md",
        "/x/.codex/memories/memory_summary.md",
        "memory/gemini.MD",
        "/x/GEMINI 2.md",
    ],
)
def test_what_other_agents_keep_of_their_owner(name: str) -> None:
    """It is for the owner's eyes, but no curated file of a workspace."""
    assert describes_owner(name)
    assert not is_curated(name)


@pytest.mark.parametrize(
    ("name", "markdown"), [("a.md", True), ("A.MD", True), ("a.mdx", False), ("md", False)]
)
def test_markdown(name: str, markdown: bool) -> None:
    """Markdown is told by its suffix, in any case."""
    assert is_markdown(name) is markdown


def test_unsound_names() -> None:
    """Control characters and bytes that are no UTF-8 show in a name."""
    assert [has_control(name) for name in ("a\tb", "a\x85", "é")] == [True, True, False]
    assert [is_utf8(name) for name in ("a\udcff", "é")] == [False, True]


CLAUDE = SessionPaths(Path("/home/ann/.claude/projects"), "claude-code", "claude-code")
MEMORIES = ExtraDirectory(Path("/home/ann/.claude"), way=("projects", "*", "memory"))


@table(
    ("root", "path", "belongs"),
    [
        (CLAUDE, "-home-ann/x.jsonl", True),
        (CLAUDE, "-home-ann/x.md", False),
        (CLAUDE, "x.jsonl", False),
        (CLAUDE, "-home-ann/u/subagents/agent-x.jsonl", False),
        (CLAUDE, ".hidden/x.jsonl", False),
        (CLAUDE, "-home-ann/a\nb.jsonl", False),
        (msgspec.structs.replace(CLAUDE, subagents=True), "-home-ann/u/subagents/agent-x.jsonl", True),
        (CHATS, "a/b/c.jsonl.zst", True),
        (CHATS, "drafts/c.jsonl", False),
        (CHATS, "node_modules/c.jsonl", False),
        (msgspec.structs.replace(CHATS, file="a.jsonl"), "a.jsonl", True),
        (msgspec.structs.replace(CHATS, file="a.jsonl"), "b.jsonl", False),
        (msgspec.structs.replace(CHATS, file="a.jsonl"), "x/a.jsonl", False),
        (MEMORIES, "projects/-home-ann/memory/a.md", True),
        (MEMORIES, "projects/-home-ann/memory/deep/er/a.md", True),
        (MEMORIES, "projects/-home-ann/a.md", False),
        (MEMORIES, "projects/-home-ann/u/a.md", False),
        (MEMORIES, "CLAUDE.md", False),
        (MEMORIES, "memory/a.md", False),
    ],
)
def test_what_belongs_to_roots_of_other_agents(root: Root, path: str, belongs: bool) -> None:
    """Transcripts by their layout, notes below the way to them."""
    assert admits(root, parts(path)) is belongs


def test_the_name_of_a_transcript_is_that_of_its_session() -> None:
    """Its directory is not in it, and no name leads back to a file."""
    for path in ("-a/x.jsonl", "-b/x.jsonl.zst"):
        assert name_of(CLAUDE, parts(path)) == "sessions/claude-code/x.jsonl"
    assert name_of(CLAUDE, ("-a",)) == "/home/ann/.claude/projects/-a"
    assert name_of(CHATS, (f"{NFD}.jsonl",)) == f"sessions/chats/{NFC}.jsonl"
    assert prefix_of(CLAUDE) == "sessions/claude-code"
    assert find_place("sessions/claude-code/x.jsonl", [WORKSPACE, CLAUDE, ExtraDirectory(Path("/"))]) is None


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("sessions/claude-code/x.jsonl", "", False),
        ("sessions/claude-code/x.jsonl", "/", False),
        ("sessions/claude-code/x.jsonl", "sessions", True),
        ("sessions/claude-code/x.jsonl", "sessions/claude-code", True),
        ("sessions/claude-code/x.jsonl", "sessions/claude", False),
        ("sessions/claude-code/x.jsonl", "sessions/claude-code/x.jsonl", True),
        ("memory/a.md", "sessions", False),
        ("MEMORY.md", "", True),
    ],
)
def test_transcripts_do_not_lie_below_the_workspace(name: str, prefix: str, expected: bool) -> None:
    """What is said of the workspace, or of the whole disk, is not said of them."""
    assert is_under(name, prefix) is expected
    assert is_under_any(name, frozenset({prefix, "other"})) is expected


NAMES = st.text(st.sampled_from("ab.m dé\x7f"), min_size=1, max_size=6).map(lambda name: name + ".md")
GLOBS = st.lists(
    st.sampled_from(["a*", "b.md", "memory/a/", "**/b/*.md", "/home/ann/vault/a/**", "[!a].md", NFC]),
    max_size=3,
)


@given(
    root=st.sampled_from([WORKSPACE, TREE, msgspec.structs.replace(TREE, way=("a", "*")), FILE, CHATS]),
    globs=GLOBS,
    directory=st.lists(st.sampled_from(["memory", "a", "b", NFC, NFD]), max_size=3).map(tuple),
    name=NAMES,
)
def test_what_holds_for_a_directory_holds_for_each_plain_note_in_it(
    root: Root, globs: list[str], directory: tuple[str, ...], name: str
) -> None:
    """A scan decides about a directory once, as it would decide about each note by itself."""
    root = msgspec.structs.replace(root, exclude=exclude_of(globs))
    if is_plain_note(name) and admits_notes(root, directory):
        is_excluded = excluded_in(root, directory)
        admitted = is_excluded is None or not is_excluded(name)
        assert admits_file(root, (*directory, name)) is admitted
        assert is_markdown(name)
        assert name_of(root, (*directory, name)) == f"{name_of(root, directory)}/{name}"


def test_most_notes_are_plain() -> None:
    """Others are decided about one by one."""
    assert is_plain_note("2026-05-01 notes.md")
    for name in (".md", ".hidden.md", "NOTES.MD", "café.md", "a\x07.md", "a.txt"):
        assert not is_plain_note(name), name
    assert admits_notes(WORKSPACE, ("memory",))
    assert not admits_notes(WORKSPACE, ())
    assert admits_notes(TREE, ())
    assert not admits_notes(msgspec.structs.replace(TREE, way=("a",)), ())
    assert not admits_notes(CHATS, ("a",))
    assert not admits_notes(FILE, ())
    assert excluded_in(WORKSPACE, ("memory",)) is None
