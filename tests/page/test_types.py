"""The page's JSDoc types hold under the strict checker, and its pure functions do what they say (in Node)."""

import json
import subprocess

import pytest

from tests.page.harness import ROOT
from weights.sizes import megabytes

STATIC = ROOT / "static"


def run(node: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([node, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def found(node: str) -> dict:
    """What tests/page/lib_checks.mjs prints."""
    done = run(node, "tests/page/lib_checks.mjs")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_types_hold(node: str):
    done = run(node, str(STATIC / "node_modules" / "typescript" / "bin" / "tsc"), "-p", str(STATIC))
    assert done.returncode == 0, done.stdout


def test_lib_imports_nothing_from_outside():
    for path in sorted((STATIC / "lib").glob("*.js")):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("import "):
                assert ' "./' in line, f"{path.name}: {line}"


def test_pixel_covers_its_cells_and_every_cell_has_a_pixel(found: dict):
    assert found["badPixels"] == []


def test_cividis_ends_and_ink_contrast(found: dict):
    assert found["ends"] == [[0, 34, 78], [254, 232, 56], [0, 34, 78]]
    assert found["worstContrast"] >= 4.5


def test_links_survive_a_round_trip_and_hostile_text(found: dict):
    assert found["links"] == {
        "roundTrip": True,
        "unread": [],
        "default": "",
        "hostile": [
            *("layer", "zoom", "view", "prompt", "an unknown field", "scale", "order", "only"),
            *("temperature", "topK", "topP", "seed", "maxTokens"),
        ],
        "hostileView": True,
        "lineEnds": "a\nb\nc\n",
        "openings": [
            ["", True, "l=2&h=0&t=1&k=0&p=a%20b"],
            ["l=2&h=0&k=0&p=a%20b", True, "l=2&h=0&k=0&p=a%20b"],
            ["l=1&h=0&t=1&k=0&p=a%20b", True, "l=1&h=0&t=1&k=0&p=a%20b"],
            ["p=a%20b", True, "p=a%20b"],
            ["l=2&h=0&t=1&k=0&p=c", True, "l=2&h=0&t=1&k=0&p=c"],
            ["s=row", True, "l=2&h=0&t=1&k=0&s=row&p=a%20b"],
        ],
        "longest": [[1, True, 0], [1, False, 0]],
    }


def test_window_in_javascript_masks_and_normalises(found: dict):
    windows = found["windows"]
    assert windows["off"] < 1e-6
    assert windows["wronglyMasked"] == 0
    assert abs(windows["renormalised"] - 1) < 1e-6
    assert windows["nothingLeft"] is True


def test_neighbours_that_share_a_character_are_known(found: dict):
    assert found["shared"] == [False, True, False, True, True, False, False]


def test_zoom_keeps_its_place_and_stops_at_the_edges(found: dict):
    near, fitted, revealed, around = found["zoom"]
    assert near == {"row0": 50, "rows": 50, "col0": 50, "cols": 50}
    assert fitted == {"row0": 0, "rows": 100, "col0": 80, "cols": 20}
    assert revealed == {"row0": 16, "rows": 10, "col0": 3, "cols": 10}
    assert around == {"row0": 5, "rows": 9, "col0": 5, "cols": 9}


def test_server_trace_asks_again_after_a_failure_and_says_when_it_is_gone(found: dict):
    assert found["serverTrace"] == {
        "failure": "The server answered 500.",
        "again": 4,
        "asked": [[2], [0], [0], [0, 1, 2]],
        "after": "This trace was destroyed; run the prompt again for another.",
    }


def test_row_of_a_head_that_failed_is_asked_for_again(found: dict):
    assert found["headRows"] == ["refused", [0.25, 0.75]]


def test_rank_story_quotes_its_token(found: dict):
    assert found["stories"] == [
        "“,” starts at rank 39 and is first from layer 1 on.",
        "“·a” is first at every depth.",
        "“x” is beyond rank 100 up to layer 0 and ends at rank 6.",
    ]


def test_blanks_have_names_and_nothing_else_has(found: dict):
    assert found["blanks"] == ["space", "2 newlines", "newline, 4 spaces", "tab", "", "", "", ""]


def test_what_is_no_number_is_not_written_as_one(found: dict):
    assert found["three"] == ["not a number", "not a number", "−∞", "0", "0.500"]


def test_sizes_are_written_as_the_command_line_writes_them(found: dict):
    for size, words in found["sizes"]:
        assert words == megabytes(size), size
    assert found["parts"] == ["41 of 97 MB", "0.5 of 0.9 MB", "0 of 4 MB"]
