"""Tables with a column of passwords."""

import time

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor


def _redacted(text: str) -> str:
    return Redactor(Redact()).redact(text).text


def test_every_row_of_a_table_is_redacted() -> None:
    """In that column alone, as far as the table goes."""
    text = "| user | password | port |\n|---|:--|---|\n| ann1 | hunter22 | 1 |\n| bob2 | `Tr0ub4d&r` | 2 |\n\n| c | hunter33 | d |"
    assert _redacted(text) == (
        "| user | password | port |\n|---|:--|---|\n| ann1 | [REDACTED:password] | 1 |\n| bob2 | `[REDACTED:password]` | 2 |\n\n| c | hunter33 | d |"
    )


@pytest.mark.parametrize("mark", [",", "\t"])
def test_lines_with_commas_or_tabs_are_a_table(mark: str) -> None:
    """Below a line of headings."""
    rows = [("name", "api_key", "team"), ("ann", "abc123def", "a1b2c3"), ("bob", "xyz789uvw", "d4e5f6")]
    redacted = _redacted("\n".join(mark.join(row) for row in rows))
    assert "abc123def" not in redacted
    assert "xyz789uvw" not in redacted
    assert "a1b2c3" in redacted


@pytest.mark.parametrize(
    "text",
    [
        "'PASSWORD',\n'SECTION-2A',\n'AS',",
        "| tokens | passwords |\n|---|---|\n| a1b2c3 | 12 |",
        "I lost my password, sadly\nsee room B4711, please",
        "| password | policy |\n|---|---|\n| length | at least 12 |",
        "password,name\n\nabc123def,ann",
    ],
)
def test_what_is_no_such_table_stays(text: str) -> None:
    """Lists of words, prose, and tables about something else."""
    assert _redacted(text) == text


def test_headings_without_end_take_no_longer() -> None:
    """Each line is walked once, though every one could be a heading."""
    short, long = ("password,password\n" * count for count in (1_000, 8_000))
    began = time.process_time()
    _redacted(short)
    between = time.process_time()
    _redacted(long)
    assert time.process_time() - between < 40 * max(between - began, 0.01)


def test_columns_that_double_width_moves_are_told_by_their_number() -> None:
    """Where a row has as many cells as the header."""
    text = (
        "资产  IP  账号  口令\nR730-1  10.0.4.201  root  g%rj4@eh^O\nESXi-3  10.0.4.203  root  xiangyang888"
    )
    assert _redacted(text) == (
        "资产  IP  账号  口令\nR730-1  10.0.4.201  root  [REDACTED:password]\nESXi-3  10.0.4.203  root  [REDACTED:password]"
    )


def test_pass_is_a_password_beside_who_logs_in() -> None:
    """And a result of a test elsewhere."""
    assert "leo4ever88" not in _redacted("| host | user | pass |\n|---|---|---|\n| nas | leo | leo4ever88 |")
    results = "| suite | pass | fail |\n|---|---|---|\n| a1 | 12of14 | 2 |"
    assert _redacted(results) == results


def test_a_word_among_passwords_is_one() -> None:
    """Where half of the column's cells are no words; what says that there is none stays."""
    rows = "username,password,email\njfoster,skylark92,j@x.org\nbkhan,Dz!77vole,b@x.org\ntpryce,mUstard_pot,t@x.org\nann,none,a@x.org"
    assert _redacted(rows) == (
        "username,password,email\njfoster,[REDACTED:password],j@x.org\nbkhan,[REDACTED:password],b@x.org\n"
        "tpryce,[REDACTED:password],t@x.org\nann,none,a@x.org"
    )
    forms = "field,password,email\ntype,string,string\nhint,hidden7x,shown\nnote,policy,none"
    assert "string" in _redacted(forms)


def test_a_row_with_numbers_is_no_heading() -> None:
    """A list of secrets, as kubectl prints it, whose names say what they are."""
    listed = (
        "NAME                  TYPE                                  DATA   AGE\n"
        "db-password           Opaque                                1      212d\n"
        "default-token-x7k2p   kubernetes.io/service-account-token   3      400d"
    )
    assert _redacted(listed) == listed
