"""Text to tokens, in Python and in the page.

Plan: both give the same ids, bytes and text for a list of hard prompts and for random mixtures of the characters that
tokenizers disagree about, under the splitting rules of every family; nothing typed becomes a control token; decoding
gives the text back; chips show what cannot be seen; long words do not take long.
"""

import json
import random

import pytest

from tests import tolerances
from tests.models.node import run_node
from tests.models.small import byte_tokenizer, make_small_model
from weights.catalogue import load_tokenizer
from weights.tokens import BadTokenId, TokenizerBroken, TokenizerMissing

PROMPTS = [
    "", " ", "\n", "a", "the the the the", "a\r\nb\tc", " leading and trailing ", "two  spaces   three", "👍🏽👍🏽",
    "👨‍👩‍👧 family", "日本語のテスト", "நன்றி हिन्दी", "مرحبا hello",
    "e\u0301 vs é", "i ⭢ j", "<b>x</b><img src=x onerror=alert(1)>",
    "<|endoftext|> <|im_start|>user<|im_end|> [PAD] <s> </s>", "\0 NUL and \u200b zero width", "Ġ and ▁ and Ċ",
    "1234567890 3.14159 ½ ² ٣ Ⅷ", "def f(x):\n    return x  # four spaces\n", "\ufeffmark\u0085next\u2028line", 
    "I'LL don't 'ſ",
]  # fmt: skip
POOLS = [
    " \n\t\r\u0085\ufeff\u200b\u00a0\u3000", "abcXYZ", "0123²½٣Ⅷ", "'sS'll'T'ſ", "éñ\u0301\u0308", "日本語",
    "👍🏽👨‍👩‍👧",
    "!?.,<|>[]/\\", "\x00\x04\x06\x13\x1d\x7f", "ĠĊ▁ǅʰ", "\ud83d\udc4d\ud800", "the and",
]  # fmt: skip
CASED = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split_by(pattern: str) -> dict:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]}}


FAMILIES = {
    "smollm2": {},
    "gpt2": {"pre_tokenizer": byte_tokenizer()["pre_tokenizer"]},
    "qwen": split_by(CASED.replace("DIGITS", r"\p{N}")) | {"normalizer": {"type": "NFC"}},
    "llama3": split_by(CASED.replace("DIGITS", r"\p{N}{1,3}")),
}


def mixtures(count: int) -> list[str]:
    chance = random.Random(22)
    return ["".join(chance.choice(chance.choice(POOLS)) for _ in range(chance.randint(1, 40))) for _ in range(count)]


def well_formed(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def in_page(tokenizer, texts: list[str]) -> dict:
    return run_node("tokens.mjs", stdin={"tokenizer": str(tokenizer), "texts": texts})


@pytest.mark.parametrize("family", FAMILIES)
def test_page_and_python_give_the_same_tokens(family, smollm2, tmp_path):
    spec = json.loads((smollm2 / "tokenizer.json").read_bytes()) | FAMILIES[family]
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    tokens, texts = load_tokenizer(tmp_path), PROMPTS + mixtures(1500)
    for text, page in zip(texts, in_page(tmp_path / "tokenizer.json", texts)["results"], strict=True):
        ids = tokens.encode(text)
        assert page["ids"] == ids, ascii(text)
        assert [bytes(piece["bytes"]) for piece in page["pieces"]] == tokens.pieces(ids)
        assert page["text"] == tokens.decode(ids)
        assert page["missing"] == tokens.missing(well_formed(text))
        assert not set(ids) & set(tokens.special)


def test_decode_gives_the_text_back(smollm2):
    tokens = load_tokenizer(smollm2)
    texts = [*PROMPTS, "abcde" * 1000, "The quick brown fox jumps over the lazy dog. " * 400]
    texts += [text for text in map(well_formed, mixtures(500)) if not tokens.missing(text)]
    assert [tokens.decode(tokens.encode(text)) for text in texts] == texts


def test_known_ids(smollm2):
    tokens = load_tokenizer(smollm2)
    assert tokens.encode("The capital of France is") == [504, 3575, 282, 4649, 314]
    assert tokens.encode("naïve café 🙂 日本") == [3546, 46494, 37366, 47526, 17097, 241, 115, 40993]


def test_typed_control_token_stays_text(tmp_path):
    tokens = load_tokenizer(make_small_model(tmp_path))
    ids = tokens.encode("<|im_end|>")
    assert len(ids) > 1 and not set(ids) & set(tokens.special)
    assert tokens.decode([2]) == "<|im_end|>" and tokens.special[2] == "<|im_end|>"


def test_byte_without_token_is_named(smollm2):
    tokens = load_tokenizer(smollm2)
    assert tokens.missing("a\x04b") == ["\x04"]
    assert tokens.missing("a\x00b") == []


def test_chip_glyphs(tmp_path):
    texts = {
        " the": "· the", "\n": "↵", "\t": "→", "\r": "⟨CR⟩", "\0": "⟨NUL⟩", "\x7f": "⟨DEL⟩", "<b>": "< b >",
        "é": "⟨C3⟩ ⟨A9⟩", "Ġ": "⟨C4⟩ ⟨A0⟩",
    }  # fmt: skip
    spec = byte_tokenizer()
    for token in ["âĢĭ", "ï»¿", "âĢ®", "Ìģ", "Ã©", "aâĢ", "Âł", "Â·", "âĨĴ"]:
        # U+200B, U+FEFF, U+202E, U+0301, é, a + half, U+00A0, and two characters that look like the marks of blanks
        spec["model"]["vocab"][token] = len(spec["model"]["vocab"])
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(spec | {"model": spec["model"] | {"ignore_merges": True}}))
    texts |= {letter: f"⟨U+{ord(letter):04X}⟩" for letter in "\u200b\u202e\u00a0\ufeff·→"} | {"\u0301": "◌\u0301"}
    found = in_page(path, list(texts))["results"]
    rows = [" ".join(piece["glyph"] for piece in page["pieces"]) for page in found]
    texts |= {" the": "·the", "é": "é"}
    assert rows == list(texts.values())
    assert [piece["partial"] for piece in found[list(texts).index("Ġ")]["pieces"]] == [True, True]


def test_long_prompts_are_cut_up_quickly(smollm2):
    words = ["abcde" * 1000, "supercalifragilistic" * 250, "a" * 5000, "\n" * 5000]
    texts = [*words, "The quick brown fox jumps over the lazy dog. " * 400]
    for page in in_page(smollm2 / "tokenizer.json", texts)["results"]:
        assert page["encodeMs"] + page["pieceMs"] < tolerances.TOKENIZE_LONG_PROMPT_MS


def test_id_outside_the_vocabulary_is_refused(tmp_path):
    tokens = load_tokenizer(make_small_model(tmp_path))
    for id in (-1, tokens.size, 2**40):
        with pytest.raises(BadTokenId, match="0 to 268"):
            tokens.decode([id])


def test_tokenizer_that_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(TokenizerMissing):
        load_tokenizer(tmp_path)
    words = byte_tokenizer() | {"pre_tokenizer": {"type": "Whitespace"}}
    spaced = byte_tokenizer()
    spaced["pre_tokenizer"]["add_prefix_space"] = True
    for text in ("", "{", "[" * 100_000, "[]", "{}", "\xff", json.dumps(words), json.dumps(spaced)):
        (tmp_path / "tokenizer.json").write_text(text, encoding="latin-1")
        with pytest.raises(TokenizerBroken):
            load_tokenizer(tmp_path)
