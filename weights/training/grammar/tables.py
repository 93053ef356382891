"""SQL over three tables whose columns stand in the text: every column name has to be looked up under its table.

    CREATE TABLE books ( id, title, price );
    CREATE TABLE cars ( brand, year, color );
    CREATE TABLE songs ( artist, genre, length );
    SELECT brand FROM cars WHERE year = 7 AND color = 3 ORDER BY brand;

Between the table's name in the query and the columns after AND and ORDER BY lies a gap: a head that only looks one
token back cannot find them.
"""

from dataclasses import dataclass
from random import Random

from weights.training.grammar.held_out import is_held_out
from weights.training.grammar.words import COLUMNS, TABLES


@dataclass(frozen=True)
class Schema:
    """tables: name -> columns, in the order of the text."""

    tables: dict[str, list[str]]

    @property
    def text(self) -> str:
        return "\n".join(f"CREATE TABLE {name} ( {', '.join(columns)} );" for name, columns in self.tables.items())


def schema(r: Random, held_out: bool = False, loose: bool = False) -> Schema:
    """Two to three tables (three when held out) of four columns; no column is in two tables. loose: three or four."""
    while True:
        names = r.sample(TABLES, 3 if held_out else r.choice([2, 3, 3, 3]))
        if is_held_out(names) == held_out:
            break
    columns = r.sample(COLUMNS, 4 * len(names))
    return Schema(
        {name: columns[4 * i : 4 * i + (r.choice([3, 4]) if loose else 4)] for i, name in enumerate(names)}
    )


def query(r: Random, s: Schema, table: str | None = None) -> str:
    """One statement about one table of the schema. No column is named twice: copying from the query does not help."""
    table = table or r.choice(list(s.tables))
    a, b, c, d = r.sample(s.tables[table], 4)
    kind = r.random()
    if kind < 0.7:
        text = f"SELECT {r.choice([a, a, a, '*'])} FROM {table} WHERE {condition(r, [b])} AND {condition(r, [c])}"
        if r.random() < 0.6:
            text += f" ORDER BY {d}"
    elif kind < 0.8:
        text = f"SELECT {a} FROM {table} WHERE {condition(r, [b])} ORDER BY {c}"
    elif kind < 0.9:
        text = f"UPDATE {table} SET {condition(r, [a], '=')} WHERE {condition(r, [b])} AND {condition(r, [c])}"
    else:
        text = f"DELETE FROM {table} WHERE {condition(r, [a])} AND {condition(r, [b])}"
    return text + ";"


def loose_query(r: Random, s: Schema) -> str:
    """A statement that may name a column twice."""
    table = r.choice(list(s.tables))
    columns = s.tables[table]
    kind = r.random()
    if kind < 0.7:
        text = f"SELECT {r.choice([*columns, '*'])} FROM {table} WHERE {condition(r, columns)}"
        if r.random() < 0.7:
            text += f" {r.choice(['AND', 'AND', 'OR'])} {condition(r, columns)}"
        if r.random() < 0.5:
            text += f" ORDER BY {r.choice(columns)}"
    elif kind < 0.85:
        text = f"UPDATE {table} SET {condition(r, columns, '=')} WHERE {condition(r, columns)}"
    else:
        text = f"DELETE FROM {table} WHERE {condition(r, columns)} AND {condition(r, columns)}"
    return text + ";"


def condition(r: Random, columns: list[str], sign: str | None = None) -> str:
    """A column compared with a number."""
    return f"{r.choice(columns)} {sign or r.choice(['=', '=', '>', '<'])} {r.randrange(10)}"


def table_text(r: Random) -> str:
    """A schema and one or two statements."""
    s = schema(r)
    return "\n".join([s.text, *(query(r, s) for _ in range(r.choice([1, 1, 2])))])


def every_table_text(r: Random) -> str:
    """A schema and one statement about each of its tables, in random order: three look-ups for one schema."""
    s = schema(r)
    return "\n".join([s.text, *(query(r, s, table) for table in r.sample(list(s.tables), len(s.tables)))])


def loose_table_text(r: Random) -> str:
    """The task's easier first form: a column may be named twice, so that copying from the query is often right."""
    s = schema(r, loose=True)
    return "\n".join([s.text, *(loose_query(r, s) for _ in range(r.choice([1, 2, 3])))])
