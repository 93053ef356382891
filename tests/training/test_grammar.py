"""The corpus: what is kept for the evaluation never reaches training, and a pronoun alone says who is meant.

Plan: no training text holds a held-out pair where the grammar tests one; the control draws held-out texts and finds
them; verbs belong to one entity; right answers are where the text says; packing and repeats have the shapes promised.
"""

from random import Random

import pytest

from weights.training import rows
from weights.training.grammar import SHARES, document, pronouns, recall, tables, words
from weights.training.grammar.held_out import is_held_out, pair_is_held_out


def test_pairs_of_the_default_prompts_are_held_out():
    assert pair_is_held_out("cat", "mat") and pair_is_held_out("mat", "cat")
    assert pair_is_held_out("John", "Mary") and pair_is_held_out("cars", "books")
    assert not is_held_out(["cat"])


@pytest.mark.parametrize("held_out", [False, True])
def test_drawn_texts_are_on_the_side_asked_for(held_out):
    r = Random(0)
    for _ in range(200):
        assert is_held_out(pronouns.choice(r, held_out).entities) == held_out
        assert is_held_out(recall.draw_names(r, held_out)) == held_out
        assert is_held_out(tables.schema(r, held_out).tables) == held_out


def test_training_texts_hold_no_held_out_seat():
    r = Random(1)
    for _ in range(300):
        text = pronouns.seat(r).lower().rstrip(".").split()
        animal = next(word for word in text if word in words.ANIMALS)
        seat = next(word for word in text if word in words.SEATS)
        assert not pair_is_held_out(animal, seat)


def test_every_verb_belongs_to_one_entity():
    verbs = [verb for own in words.PREDICATES.values() for verb in own]
    assert len(verbs) == len(set(verbs))


def test_choice_is_decided_by_the_pronoun_alone():
    r, places = Random(2), set()
    for _ in range(300):
        choice = pronouns.choice(r, count=3)
        fitting = [entity for entity in choice.entities if words.PRONOUN[entity] == choice.pronoun.lower()]
        assert fitting == [choice.entities[choice.right]]
        assert not any(verb in choice.before.split() for verb in words.PREDICATES[fitting[0]])
        places.add(choice.right)
    assert places == {0, 1, 2}


def test_receiver_is_the_name_that_did_not_give():
    r = Random(3)
    for _ in range(200):
        text, receiver = recall.gift(r)
        named = [word.strip(".,") for word in text.split() if word.strip(".,") in words.NAMES]
        assert named.count(receiver) == 1 and len(named) == 3


def test_columns_belong_to_one_table():
    r = Random(4)
    for _ in range(100):
        columns = [column for own in tables.schema(r).tables.values() for column in own]
        assert len(columns) == len(set(columns))


def test_document_is_drawn_from_every_kind_and_repeats_with_its_seed():
    assert abs(sum(SHARES.values()) - 1) < 1e-9
    assert [document(Random(5)) for _ in range(3)] == [document(Random(5))] * 3


def test_packed_rows_hold_documents_and_end_tokens():
    packed = rows.packed(lambda n: [[5, 6, 7]] * n, rows=2, T=6)
    assert packed.tolist() == [[5, 6, 7, 0, 5, 6, 7]] * 2


def test_repeated_block_never_holds_the_end_token():
    ids, period = rows.repeated(Random(6), 40, 50, 4, 9)
    assert len(ids) == 41 and 4 <= period <= 9 and rows.END_ID not in ids
    assert ids[period:] == ids[:-period]


def test_text_file_is_cut_and_every_twentieth_part_held_out(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text("<|endoftext|>".join(f"story {i}" for i in range(40)), "utf-8")
    text = rows.read_text(path)
    assert text.stories and text.held_out == ["story 0", "story 20"]
    assert len(text.train) == 38 and not set(text.train) & set(text.held_out)
