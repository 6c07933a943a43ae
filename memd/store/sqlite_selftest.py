"""Tests in memory whether the installed SQLite has the features that memd needs."""

import math

import apsw
import msgspec
import numpy as np

from memd.store import keywords, vectors
from memd.text.tokens import fts_text


class SqliteSelftest(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried; a fault is None where it went well."""

    sqlite: str  # version
    apsw: str  # version
    keywords: str | None
    vectors: str | None
    vec: str | None  # version of sqlite-vec; None: it does not load


def try_engine() -> SqliteSelftest:
    """Make a keyword index and a table of vectors, and ask both."""
    vec, fault = _try_vectors()
    return SqliteSelftest(
        sqlite=apsw.sqlite_lib_version(),
        apsw=apsw.apsw_version(),
        keywords=_try_keywords(),
        vectors=fault,
        vec=vec,
    )


def _try_keywords() -> str | None:
    connection = apsw.Connection(":memory:")
    try:
        keywords.prepare(connection)
        keywords.make(connection)
        connection.executemany(
            "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, '')",
            [(1, fts_text("我们选了数据库")), (2, fts_text("据说猫在库里数数"))],
        )
        # A pair of characters is a phrase; the other row has both, apart.
        pair = fts_text("数据").strip()
        found = [
            row
            for (row,) in connection.execute("SELECT rowid FROM keywords(?) ORDER BY rank", (f'"{pair}"',))
        ]
    except apsw.Error as error:
        return f"a keyword index cannot be made: {error}"
    else:
        return None if found == [1] else "a Chinese word of two characters is not found"
    finally:
        connection.close()


def _try_vectors() -> tuple[str | None, str | None]:
    """(version of sqlite-vec, fault)."""
    extension, fault = vectors.find_extension()
    if extension is None:
        return None, fault
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        version = str(connection.execute("SELECT vec_version()").get)
        connection.execute(
            "CREATE VIRTUAL TABLE vectors USING vec0(chunk_id INTEGER PRIMARY KEY, embedding FLOAT[3] distance_metric=cosine)"
        )
        rows = {1: [1.0, 0.0, 0.0], 2: [0.6, 0.8, 0.0], 3: [0.0, 0.0, 1.0]}
        connection.executemany(
            "INSERT INTO vectors (chunk_id, embedding) VALUES (?, ?)",
            [(number, np.array(row, np.float32).tobytes()) for number, row in rows.items()],
        )
        near = vectors.nearest(connection, np.array([1.0, 0.0, 0.0], np.float32), 2)
        is_right = [number for number, _ in near] == [1, 2] and math.isclose(near[1][1], 0.6, abs_tol=1e-5)
    except apsw.Error as error:
        return None, f"sqlite-vec does not work: {error}"
    else:
        return version, None if is_right else "sqlite-vec compares vectors wrongly"
    finally:
        connection.close()
