import msgspec

from memd.backends.qmd.manifest import ExportSource, Manifest, ManifestEntry, plan, read, safe_name
from tests.bounds import shipped


def source(name: str, state: str = "1", directory: str = "sessions/s") -> ExportSource:
    return ExportSource(directory, name, state)


def test_only_what_changed_is_written() -> None:
    """What is the same stays, also after a restart; what is gone is deleted."""
    before = Manifest(
        {
            "a": ManifestEntry("sessions/s/a.md", "1", 5),
            "b": ManifestEntry("sessions/s/b.md", "1", 5),
            "c": ManifestEntry("sessions/s/c.md", "1", 5),
        },
        "r",
    )
    sizes = {"sessions/s/a.md": 5, "sessions/s/b.md": 5, "sessions/s/c.md": 5}
    work = plan(
        read(msgspec.json.encode(before)), {"a": source("a"), "b": source("b", "2")}, rules="r", sizes=sizes
    )
    assert set(work.keep) == {"a"}
    assert work.write == {"b": ManifestEntry("sessions/s/b.md", "1", 5)}
    assert set(work.delete) == {"c"}


def test_what_somebody_took_away_or_changed_is_written_again() -> None:
    """And everything, when the rules of redaction are others."""
    before = Manifest(
        {"a": ManifestEntry("sessions/s/a.md", "1", 5), "b": ManifestEntry("sessions/s/b.md", "1", 5)}, "r"
    )
    wanted = {"a": source("a"), "b": source("b")}
    assert set(plan(before, wanted, rules="r", sizes={"sessions/s/b.md": 6}).write) == {"a", "b"}
    sizes = {"sessions/s/a.md": 5, "sessions/s/b.md": 5}
    assert set(plan(before, wanted, rules="r", sizes=sizes).write) == set()
    assert set(plan(before, wanted, rules="other", sizes=sizes).write) == {"a", "b"}


def test_a_file_of_somebody_else_keeps_its_name() -> None:
    """Ours gets another; where capitals do not count, too."""
    work = plan(Manifest(), {"a": source("a")}, rules="", sizes={"sessions/s/A.md": 3})
    [entry] = work.write.values()
    assert entry.file.casefold() != "sessions/s/a.md"
    assert not work.delete


def test_two_sources_never_share_a_file() -> None:
    """However alike their names are."""
    wanted = {"1": source("x/y"), "2": source("x:y"), "3": source("X-Y"), "4": source("x-y"), "5": source("")}
    files = [entry.file.casefold() for entry in plan(Manifest(), wanted, rules="", sizes={}).write.values()]
    assert len(set(files)) == 5
    assert all(file.startswith("sessions/s/") and file.count("/") == 2 for file in files)


def test_a_source_that_moves_is_deleted_where_it_was() -> None:
    """A note that became a curated one, for instance."""
    before = Manifest({"a": ManifestEntry("notes/a.md", "1", 5)}, "")
    work = plan(before, {"a": source("a", directory="curated")}, rules="", sizes={"notes/a.md": 5})
    assert work.write["a"].file == "curated/a.md"
    assert work.delete["a"].file == "notes/a.md"


def test_a_manifest_that_makes_no_sense_names_no_file() -> None:
    """Nothing is deleted on its account: not above the directory, not memd's own."""
    assert read(b"") == read(b"{") == read(b"[]") == Manifest()
    assert read(b'{"files": {}, "version": 99}') == Manifest()
    evil = Manifest(
        {
            str(n): ManifestEntry(file)
            for n, file in enumerate(["../x.md", "/etc/x", "a/.memd", "x", "a//b", "a/\0"])
        }
    )
    assert read(msgspec.json.encode(evil)).files == {}


def test_a_safe_name_is_part_of_a_path_everywhere() -> None:
    """Letters of any script stay."""
    assert safe_name("../a b:c") == "a-b-c"
    assert safe_name("会议") == "会议"
    assert safe_name("...") == "unnamed"
    most = shipped("memd.backends.qmd.manifest._MOST_CHARS")
    assert [len(safe_name("x" * count)) for count in (most, most + 1, 900)] == [most] * 3
