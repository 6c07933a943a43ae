"""What every test is run with: no keys, a SIGINT that interrupts, and how hard Hypothesis tries."""

import faulthandler
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests.bytecode import compile_share
from tests.order import spread

# With a key of whoever runs the tests, a daemon with provider = auto would send notes to its owner.
for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY"):
    os.environ.pop(variable, None)

# Where Python is told to keep no bytecode, each process that a test starts would compile all of memd (.25 s of the
# processor), and each worker all tests (10 s).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# httpcore asks for it at each step of a request, and where it is not installed Python looks for it on the whole path each time:
# an eighth of the processor time of tests that talk to a provider.
if find_spec("sniffio") is None:
    vars(sys)["modules"]["sniffio"] = None

# What is made while tests are imported stays to the end: to look through it again and again for what is garbage takes a
# fifth of that time in each worker, and a third of a second at each collection afterwards.
gc.disable()

# A shell starts what it runs in the background with SIGINT ignored, and so would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# More in a run of all tests, deep with --hypothesis-profile=long.
# None has a deadline, nor a limit on what it takes to make an input: each would be a time, and other work on the machine is no
# failure. But for the long one, they try the
# same each time, so that a suite that was green stays green; the long one prints the seed of what it finds. Nothing is kept
# in between: what was found belongs into a test.
settings.register_profile(
    "usual",
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("whole", settings.get_profile("usual"), max_examples=100)
settings.register_profile(
    "long",
    max_examples=1_000,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("usual")
# Hypothesis would try the constants of all modules that are loaded, too: what a test tries would depend on those before it in its
# worker, and each worker would parse all of memd (3 s of the processor in a new clone).
_providers = sys.modules.get("hypothesis.internal.conjecture.providers")
if hasattr(_providers, "_get_local_constants"):
    vars(_providers)["_get_local_constants"] = vars(_providers)["Constants"]

# Where tests run daemons, programs or disks, or compute for long, files, directories and single tests: nine tenths of the time,
# and a quarter of the tests. All others are `quick`.
_NOT_QUICK = (
    "backends/qmd",
    "benchmarks",
    "client/javascript",
    "client/mcp/test_append.py",
    "client/mcp/test_server.py",
    "client/test_examples.py",
    "client/web/test_server.py",
    "ctl/commands",
    "ctl/test_demo.py",
    "ctl/test_doctor.py",
    "ctl/test_main.py",
    "ctl/test_up_down.py",
    "daemon",
    "embedding/passage_queue/test_batch_submitter.py",
    "embedding/passage_queue/test_scheduler_remote.py",
    "faults",
    "inspection",
    "mutants/test_copies.py",
    "mutants/test_recording.py",
    "postgres",
    "providers/batch",
    "providers/local/test_bundled_model.py",
    "providers/local/test_e5_onnx.py",
    "providers/local/test_process.py",
    "providers/local/test_provider.py",
    "providers/local/test_worker.py",
    "providers/test_cosine_calibration.py",
    "rebuild/test_rebuilder.py",
    "redact/test_corpus.py",
    "redact/test_linear.py",
    "redact/test_peer.py",
    "runtime/test_malloc.py",
    "runtime/test_process.py",
    "search/test_relevance.py",
    "search/test_searcher_filtered.py",
    "search/test_searcher_shelved.py",
    "security",
    "server/requests/test_browse.py",
    "server/test_listening_socket.py",
    "store/test_embedding_cache.py",
    "store/test_int8_vectors.py",
    "test_conftest.py",
    "test_index_service.py",
    "test_units.py",
    "web",
    # These start programs.
    "client/context/test_daily_note.py::test_who_may_not_write_is_told",
    "client/context/test_daily_note.py::test_writers_at_once_lose_nothing",
    "client/web/test_gate.py::test_a_real_other_user_gets_nothing",
    "client/web/test_gate.py::test_the_file_that_opens_it",
    "client/web/test_gate.py::test_the_page_itself_is_answered",
    "config/test_check_redaction.py::test_a_python_without_that_parser_runs_the_daemon",
    "ctl/integrations/test_clients.py::test_a_script_is_named_by_its_absolute_path",
    "ctl/integrations/test_clients.py::test_without_the_script_it_is_the_module",
    "ctl/integrations/test_hooks.py::test_the_plugin_adds_what_the_hooks_say",
    "ctl/integrations/test_mcp_http.py::test_a_client_of_the_sdk_searches",
    "ctl/integrations/test_mcp_http.py::test_a_thousand_requests_are_answered_while_others_take_their_time",
    # What tells how time grows with a text needs long texts, and what holds for every character or draws many tries them all.
    "chunk/test_markdown.py::test_no_line_takes_more_than_its_length",
    "chunk/test_markdown.py::test_the_time_grows_with_the_text_alone",
    "chunk/test_markdown.py::test_work_and_memory_grow_with_the_text_alone",
    "chunk/test_markdown.py::test_work_for_one_line_grows_with_its_length_alone",
    "chunk/test_turns.py::test_a_very_long_turn_is_cut_in_linear_time",
    "chunk/test_turns.py::test_cutting_on_gives_what_cutting_all_gives",
    "client/context/test_bootstrap.py::test_no_cap_is_ever_exceeded",
    "client/mcp/test_lines.py::test_a_long_line_that_is_broken_costs_little",
    "client/test_watermark.py::test_planted_marks_cost_little",
    "config/test_load.py::test_a_file_of_another_program_is_not_read_to_its_end",
    "config/test_toml_lines.py::test_a_long_list_of_lists_ends_the_search",
    "config/test_toml_lines.py::test_what_is_parsed_in_vain_has_an_end",
    "config/test_toml_lines.py::test_work_grows_with_the_text_alone",
    "ctl/integrations/test_hook_context.py::test_any_input_is_read_or_empty",
    "ctl/test_atomic_write.py::test_what_is_far_too_large_is_not_read",
    "indexing/test_index_transcripts.py::test_turns_that_are_taken_back_one_by_one_leave_the_chunks_of_a_first_reading",
    "indexing/test_index_transcripts.py::test_what_grew_step_by_step_equals_what_is_read_at_once",
    "providers/remote/test_http.py::test_requests_that_are_broken_off_at_any_moment_take_no_place_from_later_ones",
    "providers/remote/test_identify_model.py::test_vectors_without_different_lines_never_meet",
    "providers/remote/test_provider.py::test_a_passing_fault_is_not_noticed",
    "providers/remote/test_provider.py::test_what_was_answered_beside_refused_texts_is_paid_for_once",
    "providers/remote/test_replies.py::test_no_header_is_more_than_a_wait",
    "redact/test_places.py::test_a_password_goes_wherever_it_stands",
    "redact/test_redactor.py::test_a_rule_that_skips_prose_finds_nothing_there",
    "redact/test_redactor.py::test_calls_grow_with_the_length",
    "redact/test_redactor.py::test_only_what_is_near_is_searched_again",
    "redact/test_redactor.py::test_what_is_said_again_and_again_is_taken_out_each_time",
    "redact/test_rule.py::test_the_anchors_of_all_rules_stand_where_a_search_finds_them",
    "redact/test_token_formats.py::test_a_key_goes_beside_its_vendor_and_a_word_for_it",
    "redact/test_token_formats.py::test_a_token_goes_from_every_surrounding",
    "redact/test_token_formats.py::test_the_shortest_token_goes",
    "redact/test_unseen.py::test_what_is_distinctive_goes",
    "search/test_query.py::test_every_character_is_found_by_the_string_that_holds_it",
    "search/test_query.py::test_no_question_makes_a_long_phrase",
    "search/test_query.py::test_sqlite_divides_every_character_as_places_are_told",
    "search/test_query.py::test_work_is_bounded_by_what_is_read",
    "search/test_searcher_filtered.py::test_a_search_answers_the_same_with_postings_in_memory",
    "search/test_spelling.py::test_a_misspelt_name_finds_its_note",
    "search/test_spelling.py::test_other_words_stay_as_they_are",
    "server/test_handlers.py::test_sessions_that_were_warmed_are_remembered_up_to_a_number",
    "sources/transcripts/test_boilerplate.py::test_time_is_linear",
    "sources/transcripts/test_database_reader.py::test_after_any_history_it_is_as_if_read_for_the_first_time",
    "sources/transcripts/test_exports.py::test_a_text_without_an_end_is_given_up",
    "sources/transcripts/test_lenient_json.py::test_no_bytes_make_a_parser_raise",
    "sources/transcripts/test_lenient_json.py::test_time_is_linear",
    "sources/transcripts/test_reader.py::test_a_small_file_may_not_hold_very_much",
    "sources/transcripts/test_reader.py::test_whatever_is_in_a_compressed_transcript_it_is_read_or_refused",
    "store/test_postings.py::test_edits_leave_few_segments",
    "store/test_postings.py::test_postings_rank_as_fts5_does",
    "store/test_postings.py::test_the_chunks_that_hold_a_word_are_those_of_fts5",
    "store/test_vector_matrix.py::test_as_many_as_are_wanted_are_the_nearest",
    "store/test_vector_matrix.py::test_rows_that_are_gone_take_no_room_for_ever",
    "test_bounds.py::test_every_bound_has_a_test_that_goes_to_it_or_a_reason",
    "test_class_names.py::test_docstrings_name_errors_that_exist",
    "test_conventions.py::test_what_strings_name_of_memd_is_there",
    "text/test_tokens.py::test_every_code_point_is_divided_alike_in_texts_questions_and_places",
)
_WITHOUT_LONG = ("not long", "quick")
_HERE = Path(__file__).parent
_SLOW_TESTS = frozenset(place for place in _NOT_QUICK if "::" in place)
_SLOW = frozenset(_HERE / place for place in _NOT_QUICK if "::" not in place)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: a test of a daemon waits for its process, and others hardly ever.

    Each worker takes nine seconds of the processor to import and collect all tests. On two cores three took less time than
    four: 5:38 against 5:56, and quick tests 77 s with three and 95 s with two.
    """
    return (os.cpu_count() or 1) + 1


# Where Linux keeps files in memory, and the bytes that must be free there: a whole run has used .4 GB at a time.
_MEMORY = Path("/dev/shm")
_SCRATCH_BYTES = 2_000_000_000


def _scratch_in_memory() -> None:
    """What tests write lies in memory, unless somebody says where.

    Each index that a test makes waits for the disk some ten times, which is a third of the time of a quick run, and shows nothing:
    what a power cut leaves is tried on a model of a disk (`tests/faults`).
    """
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _SCRATCH_BYTES
    if sys.platform == "linux" and "TMPDIR" not in os.environ and has_room:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # it has been looked up


def pytest_configure(config: pytest.Config) -> None:
    """Write to memory but in a run of all tests, which tries five times as many inputs."""
    if config.option.markexpr:
        _scratch_in_memory()
    elif not config.getoption("--hypothesis-profile"):
        settings.load_profile("whole")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Compile a share of what is imported, where there is no bytecode yet: else each worker would compile all of it."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        compile_share(int(worker["workerid"].removeprefix("gw")), worker["workercount"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Of a test that passes, have a worker tell no more than that: a quick run sends 24,000 messages instead of 72,000.

    Each costs the two processes .1 ms. What lists how long tests took needs them all.
    """
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.durations is not None or option.xmlpath is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test with a limit of its own have its process as much longer, which pytest would end after the usual time."""
    marker = item.get_closest_marker("timeout")
    usual = float(item.config.getini("timeout"))
    if marker is not None and marker.args[0] > usual:
        seconds = float(item.config.getini("faulthandler_timeout")) * marker.args[0] / usual
        stderr = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(seconds, file=stderr, exit=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m quick`, what cannot be quick is not even imported: each worker would do so for itself (1.5 s)."""
    return True if config.option.markexpr == "quick" and collection_path in _SLOW else None


def pytest_collection_finish() -> None:
    """Have the garbage collection leave alone what there is by now, and look through what is new less often.

    To look through what there is takes .4 s, and to look as often as usual takes a tenth of the time of tests in this process.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make nothing of rows that are not run: a third of all rows, and to make and drop one takes each worker .2 ms."""
    marker = metafunc.definition.get_closest_marker("rows")
    if marker is not None and metafunc.config.option.markexpr in _WITHOUT_LONG:
        del metafunc._calls[marker.args[0] :]  # noqa: SLF001 - there is no other way


def _mark_other_rows(items: Sequence[pytest.Item]) -> None:
    """Mark the rows of parametrized tests that are long because others are run without them."""
    met = Counter[str]()
    for item in items:
        marker = item.get_closest_marker("rows")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            met[test] += 1
            if met[test] > marker.args[0]:
                item.add_marker(pytest.mark.long)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the long rows, and the quick tests; a worker gets them in another order."""
    _mark_other_rows(items)
    for place in _NOT_QUICK:
        file, _, test = place.partition("::")
        if not (_HERE / file).exists() or (test and f"def {test}(" not in (_HERE / file).read_text("utf-8")):
            raise pytest.UsageError(
                f"{place} is in tests/conftest.py's list of what is not quick, and is not there"
            )
    is_slow = cache(lambda path: not _SLOW.isdisjoint({path, *path.parents}))  # a path has many tests
    for item in items:
        test = item.nodeid.removeprefix(f"{_HERE.name}/").partition("[")[0]
        if item.get_closest_marker("long") is None and test not in _SLOW_TESTS and not is_slow(item.path):
            item.add_marker(pytest.mark.quick)
    if hasattr(config, "workerinput"):
        items[:] = spread(items, lambda item: item.path, is_slow)
