import pytest

from memd.config.origins import origin
from memd.config.toml_lines import Key, lines

_LINES = lines("""\
[daemon]
log_level = "info"
[defaults]
query = { max_results = 3 }
extra_paths = []
exclude = []
[agents.main]
query.min_score = 0.1
extra_paths = ["x"]
exclude = ["y"]
""")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (("daemon", "log_level"), "line 2"),
        (("agents", "main", "query", "max_results"), "line 4, [defaults]"),
        (("agents", "main", "query", "min_score"), "line 8"),
        (("agents", "main", "extra_paths"), "lines 9 and 5, [defaults]"),
        (("agents", "main", "exclude"), "line 10"),
        (("agents", "work", "exclude"), "line 6, [defaults]"),
        (("agents", "main", "model"), "default"),
    ],
)
def test_a_value_comes_from_the_nearest_place_that_says_it(key: Key, expected: str) -> None:
    """The agent, then [defaults], then memd itself."""
    assert origin(key, _LINES) == expected
