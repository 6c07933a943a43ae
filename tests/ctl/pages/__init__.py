"""Whole pages that memd-ctl prints, each compared with one file beside this one."""

import os
from pathlib import Path

from memd import VERSION

_WRITES = "WRITE_PAGES"  # tests take away what begins with MEMD_


def check_page(name: str, text: str) -> None:
    """Compare a page with its file; with WRITE_PAGES=1 in the environment the file is written instead."""
    file = Path(__file__).with_name(f"{name}.txt")
    page = text.replace(VERSION, "VERSION").rstrip("\n") + "\n"
    if os.environ.get(_WRITES):
        file.write_text(page, encoding="utf-8")
    assert page == file.read_text(encoding="utf-8"), f"if that is meant: {_WRITES}=1 pytest -k ..."
