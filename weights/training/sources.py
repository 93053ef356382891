"""What is known of the texts that a model was trained on: by their content's hash, never by a file's name."""

from collections.abc import Iterable

KNOWN = {  # SHA-256 of the file: what it holds and under which terms
    "5352b299dcb1a32898b2d779b145b5a05f3e1265953fd21c264c9f9f9c9ae33d": (
        "TinyStories (Eldan and Li 2023), CDLA-Sharing-1.0, whose share-alike is for the data and not for models "
        "trained on it"
    ),
    "9106f72ac15c32919b8a1db77732511bb7aa3c9baeab5d13850d9db3e8cee6c1": "books out of copyright",
}
UNKNOWN = "a text file whose terms this project does not know"
GRAMMAR = "a grammar of this project"


def what(sha256: str) -> str:
    """What a text is, in words."""
    return KNOWN.get(sha256, UNKNOWN)


def data(hashes: Iterable[str]) -> str:
    """All that a model was trained on, in a line; several unknown texts are one entry."""
    return "; ".join([*dict.fromkeys(what(sha256) for sha256 in hashes), GRAMMAR])
