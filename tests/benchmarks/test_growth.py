"""The growth of costs as it is printed and drawn, and a real measurement of a small memory."""

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.benchmarks.growth import CURVES, PAGE, Cost, drawing, measured, table, written

SMALL = Cost(
    chunks=200,
    text_s=1.0,
    complete_s=1.5,
    text_cpu_s=0.8,
    complete_cpu_s=0.9,
    search_p50_ms=2.0,
    search_p95_ms=4.0,
    search_cpu_ms=1.5,
    product_ms=0.04,
    answers_s=400.0,
    edit_ms=15.0,
    edit_vector_ms=20.0,
    first_answer_ms=450.0,
    first_answer_cpu_ms=300.0,
    resident_mb=70.0,
    anonymous_mb=45.0,
    disk_times_text=26.0,
)
LARGE = msgspec.structs.replace(SMALL, chunks=20_000, search_p50_ms=9.0, search_cpu_ms=8.0, product_ms=2.0)


def test_the_table_has_a_column_for_each_size() -> None:
    """And the ratio of a search to what no exact search by meaning can do without."""
    lines = table([SMALL, LARGE]).splitlines()
    assert lines[0] == "|  | 200 | 20,000 |"
    assert "| search / product, CPU | 37.5 | 4.0 |" in lines
    assert {line.count("|") for line in lines} == {4}


def test_the_table_takes_the_place_of_the_one_in_the_page() -> None:
    """With what it was measured beside; all else of the page stays, and so it can be written again."""
    page = PAGE.read_text("utf-8")
    before, _, after = page.partition("_Measured on ")
    for costs in ([SMALL], [SMALL, LARGE]):
        page = written(page, costs, "Measured on a napkin.")
        assert page.startswith(f"{before}_Measured on a napkin._\n\n{table(costs)}\n\n![")
        assert page.endswith(after[after.index("![") :])
    with pytest.raises(ValueError, match="no table"):
        written("# A page\n", [SMALL], "")


def test_the_drawing_has_a_curve_for_each_cost() -> None:
    """Larger memories stand to the right, larger costs above."""
    root = ET.fromstring(drawing([SMALL, LARGE]))
    svg = "{http://www.w3.org/2000/svg}"
    curves = root.findall(f"{svg}polyline")
    assert len(curves) == len(CURVES)
    texts = [one.text for one in root.findall(f"{svg}text")]
    assert {"200", "20,000", *(name for name, _, _ in CURVES)} <= set(texts)
    [of_search] = [
        one
        for one in curves
        if one.get("stroke") == next(colour for name, colour, _ in CURVES if name == "search p50, ms")
    ]
    (x1, y1), (x2, y2) = (
        tuple(map(float, point.split(","))) for point in (of_search.get("points") or "").split()
    )
    assert x1 < x2
    assert y1 > y2


@pytest.mark.long
def test_a_small_memory_is_measured(tmp_path: Path) -> None:
    """A real daemon from nothing, started anew, asked and edited."""
    cost = measured(tmp_path, 60)
    assert 60 <= cost.chunks < 120
    assert 0 < cost.search_p50_ms <= cost.search_p95_ms
    assert cost.text_s <= cost.complete_s
    assert 0 < cost.text_cpu_s <= cost.complete_cpu_s
    assert cost.first_answer_cpu_ms > 0
    assert cost.edit_ms <= cost.edit_vector_ms
    assert cost.answers_s > 0
    assert cost.disk_times_text > 1
