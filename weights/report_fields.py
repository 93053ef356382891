"""Single values of a report, each read strictly: what is not as the rule says is refused with its place and the rule.

Every reader takes (value, where) and returns the value; `where` names the place for the sentence. Text is Unicode that
can be written as UTF-8: a lone surrogate from a JSON escape could not even be sent. A line shows something, stays one
line and turns no direction of writing around: it stands in sentences of the page's own.
"""

import unicodedata
from collections.abc import Callable, Mapping

from weights.errors import CheckpointError, quoted

BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class ReportField(CheckpointError):
    """A value of a report is of its kind and within its bounds."""

    code = "report-field"


def _refuse(where: str, value: object, allowed: str) -> ReportField:
    return ReportField(f"{where} is {quoted(value, 40)}; it must be {allowed}. Write it again or remove the file.")


def whole(value: object, where: str, below: int) -> int:
    """A whole number from 0 to below - 1."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
        raise _refuse(where, value, f"a whole number from 0 to {below - 1}")
    return value


def wholes(value: object, where: str, most: int, below: int) -> list[int]:
    """1 to `most` whole numbers."""
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise _refuse(where, value, f"a list of 1 to {most} whole numbers")
    return [whole(item, where, below) for item in value]


def number(value: object, where: str, low: float, high: float) -> float:
    """A number from low to high, both finite; a whole one may be larger than any float and is then refused."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise _refuse(where, value, f"a number from {low} to {high}")
    return value


def numbers(value: object, where: str, count: int, low: float, high: float) -> list[float]:
    """Exactly `count` numbers."""
    if not isinstance(value, list) or len(value) != count:
        raise _refuse(where, value, f"a list of {count} numbers")
    return [number(item, where, low, high) for item in value]


def text(value: object, where: str, longest: int) -> str:
    """Text of 1 to `longest` characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest or any("\ud800" <= c <= "\udfff" for c in value):
        raise _refuse(where, value, f"text of 1 to {longest} characters")
    return value


def line(value: object, where: str, longest: int) -> str:
    """Text on one line, see `is_line`."""
    if not is_line(text(value, where, longest)):
        raise _refuse(where, value, "one line that is not blank, without control characters")
    return value


def is_line(value: str) -> bool:
    """Whether text shows something and can be sent, without line breaks, control characters and bidi controls."""
    kinds = {unicodedata.category(character) for character in value}
    return bool(value.strip()) and not kinds & {"Cc", "Cs", "Zl", "Zp"} and not BIDI_CONTROLS & set(value)


def texts(value: object, where: str, most: int, longest: int) -> list[str]:
    """At most `most` lines."""
    if not isinstance(value, list) or len(value) > most:
        raise _refuse(where, value, f"a list of at most {most} names")
    return [line(item, where, longest) for item in value]


def listed(value: Mapping, name: str, most: int, least: int = 1) -> list:
    """The list `name` of an object."""
    found = value.get(name)
    if not isinstance(found, list) or not least <= len(found) <= most:
        size = f"{most}" if least == most else f"{least} to {most}"
        given = f"a list of {len(found)}" if isinstance(found, list) else found
        raise _refuse(name, given, f"a list of {size} entries")
    return found


def mapping(value: object, where: str, most: int) -> dict:
    """An object of 1 to `most` entries."""
    if not isinstance(value, dict) or not 1 <= len(value) <= most:
        raise _refuse(where, value, f"an object of 1 to {most} entries")
    return value


def entry(value: object, read: Mapping[str, Callable], where: str, rest: bool = False) -> dict:
    """An object's values, by the reader of each name; names that no reader is for are left out, or kept as `rest`."""
    if not isinstance(value, dict):
        raise _refuse(where, value, "an object")
    return (value if rest else {}) | {
        name: reader(value.get(name), f"{where}, {name},") for name, reader in read.items()
    }
