import pytest

from tests.modules import existing


def test_modules_that_exist_are_given_back() -> None:
    """Whether they are loaded or not."""
    assert existing("memd.ctl", "xml.sax.saxutils") == ("memd.ctl", "xml.sax.saxutils")


@pytest.mark.parametrize("name", ["memd.no_such_module", "no_such_package.module", "nosuchmodule"])
def test_a_name_of_no_module_is_refused(name: str) -> None:
    """Else a list of what must not be loaded would go on passing when a module was renamed."""
    with pytest.raises(AssertionError, match=name):
        existing("memd.ctl", name)
