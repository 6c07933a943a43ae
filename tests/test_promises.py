"""The table of promises names tests that there are, and says how they went."""

import pytest

from tests.promises import PROMISES, ROOT, outcomes, promises, written

PAGE = """before

| promise | test | last measured |
|---|---|---|
| **Files** | | |
| read | `files/test_read.py`; at length `python -m tests.long` | 7 passed; 200 times |
| kept | `store/` | |

after | all |
"""

REPORT = """<testsuites><testsuite>
<testcase classname="tests.files.test_read" name="one"/><testcase classname="tests.files.test_read" name="two"/>
<testcase classname="tests.store.test_a" name="one"/>{more}
</testsuite></testsuites>"""


def test_each_promise_names_tests_that_are_there() -> None:
    """No line of the real table is without a test, and without a result."""
    made = promises(PROMISES.read_text("utf-8"))
    assert made
    assert [one.text for one in made if not one.tests or not one.measured] == []
    gone = [place for one in made for place in one.tests if not (ROOT / "tests" / place).exists()]
    assert gone == []


def test_results_are_written_and_remarks_stay() -> None:
    """The number is new; what a person measured beside it is as it was."""
    page = written(PAGE, outcomes(REPORT.format(more="")))
    assert [one.measured for one in promises(page)] == ["2 passed; 200 times", "1 passed"]
    assert page.endswith("\nafter | all |\n")


@pytest.mark.parametrize("tag", ["failure", "error", "skipped"])
def test_what_did_not_pass_is_no_result(tag: str) -> None:
    """One that failed, or did not run, is named; what no promise is made of is no matter."""
    other = f'<testcase classname="tests.other.test_b" name="late"><{tag}/></testcase>'
    assert written(PAGE, outcomes(REPORT.format(more=other)))
    more = f'<testcase classname="tests.store.test_b" name="late"><{tag}/></testcase>'
    with pytest.raises(ValueError, match=r"store/test_b\.py: late did not pass"):
        written(PAGE, outcomes(REPORT.format(more=more)))


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("no table", "there is no line"),
        (PAGE.replace("`store/`", "`nowhere/`"), "no test passed for: kept"),
        (PAGE.replace("| kept |", "| kept | more |"), "not three columns"),
    ],
)
def test_a_promise_without_a_test_is_told(page: str, says: str) -> None:
    """Nothing is written over what makes no sense."""
    with pytest.raises(ValueError, match=says):
        written(page, outcomes(REPORT.format(more="")))
