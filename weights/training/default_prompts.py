"""The prompts that the page offers, each with the head to look at, chosen by the evaluation, and the claim it makes.

prompts.json: {"model_sha256", "prompts": [{"id", "title", "text", "layer", "head", "query", "keys", "weight", "next",
"says"}]}. query: position of the token to select; keys: positions that the claim is about; weight: what the head puts
on them together; next: the token that the model predicts after the query. A prompt whose claim does not hold, its
weight being below HOLDS, is not offered.
"""

from dataclasses import dataclass

from weights.training.evaluate import Report
from weights.training.measures import DEFAULT_PROMPT
from weights.training.probe import Probe, last

HOLDS = 0.5
REPEATED = "red apple stone map rope red apple stone map"
NAMES = "When Mary and John went to the store, John gave a drink to"
TABLES = (
    "CREATE TABLE books ( id, title, price, genre );\nCREATE TABLE cars ( speed, color, year, brand );\n"
    "CREATE TABLE songs ( artist, length, rating, score );\nSELECT color FROM cars WHERE speed = 3 AND"
)


@dataclass(frozen=True)
class Claim:
    """One prompt and what it says: `head` puts most of `query`'s attention on `keys`.

    why: speaks of what is on the screen alone; {next} in it stands for the likeliest next token.
    """

    id: str
    title: str
    text: str
    head: tuple[int, int]
    query: int
    keys: tuple[int, ...]
    why: str


def offered(probe: Probe, report: Report) -> list[dict]:
    """The entries of prompts.json."""
    entries = [described(probe, claim) for claim in claims(probe, report)]
    return [entry for entry in entries if entry["weight"] >= HOLDS]


def claims(probe: Probe, report: Report) -> list[Claim]:
    """The four prompts, the first being the one the page opens on."""
    return [make(probe, report) for make in (_coreference, _induction, _names, _tables)]


def _coreference(probe: Probe, report: Report) -> Claim:
    ids = probe.tokens.encode(DEFAULT_PROMPT)
    return Claim(
        id="coreference",
        title="What does “it” mean?",
        text=DEFAULT_PROMPT,
        head=report.reference_head(),
        query=last(ids, probe.one(" it")),
        keys=(ids.index(probe.one(" cat")),),
        why="from “it” this head looks back at “cat”, not at “mat”. What comes after “it” is not read yet and "
        "cannot matter. The likeliest next word is what a cat does, “{next}”",
    )


def _induction(probe: Probe, report: Report) -> Claim:
    ids, stone = probe.tokens.encode(REPEATED), probe.one(" stone")
    return Claim(
        id="induction",
        title="Say it again",
        text=REPEATED,
        head=report.best("induction")[1:],
        query=ids.index(stone, 5),
        keys=(ids.index(stone) + 1,),
        why="from the second “stone” this head looks at what followed the first one, “map”, and that comes next",
    )


def _names(probe: Probe, report: Report) -> Claim:
    ids = probe.tokens.encode(NAMES)
    return Claim(
        id="names",
        title="Who gets the drink?",
        text=NAMES,
        head=report.best("receiver_first")[1:],
        query=len(ids) - 1,
        keys=(ids.index(probe.one(" Mary")),),
        why="from the last “to” this head looks at the one name that has not given anything, “Mary”, and that "
        "comes next",
    )


def _tables(probe: Probe, report: Report) -> Claim:
    ids = probe.tokens.encode(TABLES)
    opening = [i for i, id in enumerate(ids) if id == probe.one(" (")][1]
    columns = tuple(ids.index(probe.one(f" {column}"), opening) for column in ("speed", "color", "year", "brand"))
    return Claim(
        id="tables",
        title="Which table has this column?",
        text=TABLES,
        head=report.look_up_head()[1:],
        query=len(ids) - 1,
        keys=columns,
        why="from “AND” this head looks up the columns of “cars”, the table that FROM names, and one of them, "
        "“{next}”, comes next",
    )


def described(probe: Probe, claim: Claim) -> dict:
    """The claim with what the model does: the entry of prompts.json."""
    ids = probe.tokens.encode(claim.text)
    pattern, logits = probe.look(ids)
    layer, head = claim.head
    weight = float(pattern[layer, head, claim.query, list(claim.keys)].sum())
    following = probe.tokens.decode([int(logits[claim.query].argmax())])
    return {
        "id": claim.id,
        "title": claim.title,
        "text": claim.text,
        "layer": layer,
        "head": head,
        "query": claim.query,
        "keys": list(claim.keys),
        "weight": round(weight, 3),
        "next": following,
        "says": f"Layer {layer}, head {head}: {claim.why.replace('{next}', following.strip())}.",
    }
