"""Tries odd inputs for a given time, kind by kind, and tells what was found.

    python -m tests.faults.fuzz [--minutes N] [--seed N] [--kind NAME ...] [--more]

The tests are those of the suite; here each goes on, in rounds with seeds of their own, until its share of the time is
over. Ends with status 1 where something was found, having printed the input and the seed of its round.
"""

import argparse
import functools
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType
from typing import Any

import msgspec
from hypothesis import HealthCheck, seed, settings
from hypothesis.errors import HypothesisWarning

_SLOWEST_S = 20.0  # a round; how far it is can be told in between

settings.register_profile(
    "fuzz",
    max_examples=100,
    deadline=None,
    database=None,  # what was found is told, and belongs into a test
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)
settings.load_profile("fuzz")

# After the profile, which the tests take at their definition.
from memd.runtime import logs  # noqa: E402
from tests.backends.qmd import test_parse  # noqa: E402
from tests.chunk import test_markdown, test_turns  # noqa: E402
from tests.client import (  # noqa: E402
    test_codec,
    test_paths,
    test_session_key,
    test_tool_arguments,
    test_tool_replies,
)
from tests.config import test_check_redaction, test_load  # noqa: E402
from tests.ctl import test_daemon_log  # noqa: E402
from tests.ctl.integrations import test_hook_context  # noqa: E402
from tests.faults import test_fuzz_files, test_fuzz_socket  # noqa: E402
from tests.faults.house import housed  # noqa: E402
from tests.redact import test_redactor  # noqa: E402
from tests.search import test_query, test_snippet  # noqa: E402
from tests.server import test_connection  # noqa: E402
from tests.sources import test_notes  # noqa: E402
from tests.sources.transcripts import test_lenient_json, test_read_position, test_reader, test_turn_builder  # noqa: E402


class Property(msgspec.Struct, frozen=True):
    """A test of Hypothesis, with what it needs beside its inputs."""

    test: Any
    needs: Mapping[str, Callable[[], AbstractContextManager[object]]] = {}


def _with_house(test: Any) -> Property:
    return Property(test, {"house": housed})


KINDS: Mapping[str, tuple[Property, ...]] = MappingProxyType(
    {
        "frames": (
            Property(test_codec.test_any_cut),
            Property(test_codec.test_a_stream_means_the_same_however_it_is_cut),
            Property(test_codec.test_what_a_client_may_say_means_the_same_however_it_is_cut),
            Property(test_connection.test_any_bytes_are_answered_or_refused),
            Property(test_connection.test_what_is_nearly_the_protocol_is_answered_or_refused),
            _with_house(test_fuzz_socket.test_any_bytes_end_in_replies_alone),
        ),
        "messages": (
            Property(test_codec.test_noise),
            Property(test_codec.test_structured_noise),
            Property(test_codec.test_every_message_comes_back),
            Property(test_codec.test_what_is_nearly_a_message_is_one_or_a_typed_error),
            _with_house(test_fuzz_socket.test_any_request_is_answered),
        ),
        "transcripts": (
            Property(test_read_position.test_pieces_make_no_difference),
            Property(test_lenient_json.test_what_is_nearly_a_line_is_read_or_counted),
            Property(test_turn_builder.test_many_readings_give_what_one_gives),
            Property(test_turns.test_cutting_on_gives_what_cutting_all_gives),
            Property(test_reader.test_whatever_is_in_a_transcript_it_says_the_same_however_it_grows),
            Property(test_reader.test_whatever_is_in_a_compressed_transcript_it_is_read_or_refused),
            Property(test_reader.test_a_compressed_transcript_says_what_it_said_before),
            _with_house(test_fuzz_files.test_any_transcripts_become_a_fresh_index),
        ),
        "markdown": (
            Property(test_notes.test_any_file_is_lines_of_text),
            Property(test_markdown.test_chunks_of_any_document_make_the_document),
            Property(test_markdown.test_any_note_is_cut_into_its_lines),
            Property(test_redactor.test_redacting_twice_is_redacting_once),
            _with_house(test_fuzz_files.test_any_notes_become_a_fresh_index),
        ),
    }
)
"""What comes through the socket and from the disk, by the kind of input."""

MORE: Mapping[str, tuple[Property, ...]] = MappingProxyType(
    {
        "configuration": (
            Property(test_load.test_any_file_is_a_configuration_or_an_error),
            Property(test_load.test_any_document_is_a_configuration_or_an_error),
            Property(test_load.test_any_agent_is_a_configuration_or_an_error),
            Property(test_load.test_a_configuration_with_slips_is_one_or_an_error),
            Property(test_load.test_a_configuration_in_disorder_is_one_or_an_error),
        ),
        "questions": (
            Property(test_query.test_no_question_breaks_the_index),
            Property(test_query.test_a_text_answers_itself),
            Property(test_snippet.test_a_window_of_any_text_for_any_question_is_a_part_of_it),
        ),
        "session-keys": (
            Property(test_session_key.test_any_string_is_a_key),
            Property(test_session_key.test_hooks_stay_outside),
            Property(test_session_key.test_groups_stay_groups),
        ),
        "qmd": (Property(test_parse.test_any_output_is_read_or_no_answer),),
        "tools": (
            Property(test_tool_arguments.test_whatever_a_model_writes_is_read_or_refused),
            Property(test_tool_arguments.test_what_is_nearly_a_call_is_read_or_refused),
            Property(test_tool_replies.test_a_search_is_never_longer_than_it_may_be),
        ),
        "hooks": (Property(test_hook_context.test_any_input_is_read_or_empty),),
        "environment": (Property(test_paths.test_any_environment_names_places),),
        "redaction": (
            Property(test_redactor.test_no_text_takes_long),
            Property(test_check_redaction.test_any_pattern_is_refused_or_has_an_end),
            Property(test_check_redaction.test_what_is_plainly_bounded_is_so),
        ),
        "logs": (
            Property(test_daemon_log.test_any_log_can_be_shown),
            Property(test_daemon_log.test_the_last_lines_are_those_of_the_file),
        ),
    }
)
"""What comes from a person or from another program; each by its name alone."""


class Tally(msgspec.Struct):
    """What came of one kind."""

    examples: int = 0
    found: list[str] = []


def main(arguments: Sequence[str]) -> int:
    """Try, and tell; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fuzz", description="Try odd inputs.")
    parser.add_argument("--minutes", type=float, default=10, metavar="N", help="in all")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first round of each test")
    parser.add_argument(
        "--kind",
        action="append",
        choices=[*KINDS, *MORE],
        metavar="NAME",
        help=f"these alone, else {', '.join(KINDS)}; there are {', '.join(MORE)}, too",
    )
    parser.add_argument("--more", action="store_true", help="all of them")
    chosen = parser.parse_args(arguments)
    logs.configure("error", sys.stderr, terminal=False, color=False)
    warnings.simplefilter("error")  # as in the suite
    warnings.simplefilter("ignore", HypothesisWarning)  # what was found may be long
    every = {**KINDS, **MORE}
    kinds = list(every) if chosen.more else chosen.kind or list(KINDS)
    is_well = True
    for kind in kinds:
        share_s = 60 * chosen.minutes / len(kinds) / len(every[kind])
        tally, began = Tally(), time.monotonic()
        for tried in every[kind]:
            _try(tried, share_s, chosen.seed, tally)
        took_s = time.monotonic() - began
        _say(
            f"{kind}: {tally.examples:,} examples of {len(every[kind])} tests in {took_s:.0f} s,"
            f" {len(tally.found) or 'nothing'} found"
        )
        for told in tally.found:
            _say(told)
        is_well = is_well and not tally.found
    return 0 if is_well else 1


def _try(tried: Property, share_s: float, first: int, tally: Tally) -> None:
    """Rounds of a test until its time is over, or something is found."""
    test = tried.test
    inner = test.hypothesis.inner_test

    @functools.wraps(inner)
    def counted(*arguments: Any, **more: Any) -> Any:
        tally.examples += 1
        return inner(*arguments, **more)

    test.hypothesis.inner_test = counted
    until = time.monotonic() + share_s
    with ExitStack() as stack:
        needs = {name: stack.enter_context(make()) for name, make in tried.needs.items()}
        for number in _seeds(first, until):
            try:
                seed(number)(test)(**needs)
            except BaseException as failure:
                tally.found.append(_told(test, number, failure))
                if isinstance(failure, KeyboardInterrupt):
                    raise
                break
    test.hypothesis.inner_test = inner


def _seeds(first: int, until: float) -> Iterator[int]:
    """One for each round there is time for, and for one at least."""
    number, longest_s = first, 0.0
    while number == first or time.monotonic() + longest_s / 2 < until:
        began = time.monotonic()
        yield number
        longest_s = min(_SLOWEST_S, max(longest_s, time.monotonic() - began))
        number += 1


def _told(test: Any, number: int, failure: BaseException) -> str:
    shown = "".join(traceback.format_exception(failure))
    return f"--- {test.__module__}.{test.__name__}, --seed {number}\n{shown[-20_000:]}"


def _say(text: str) -> None:
    # What was found may be no text that a terminal takes.
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
