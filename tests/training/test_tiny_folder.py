"""The committed folder: what it holds, how large it is, and that transformers computes the same from it.

Plan: files and sizes; the catalogue lists it; logits and patterns agree with transformers' own Qwen3
in float32; tokens of the demonstrations are single; the card states sources and licences.
"""

import json
import subprocess

import pytest
import torch

from python_ref.load import load_model
from python_ref.trace import trace
from tests.conftest import ROOT
from tests.tolerances import EXPORTED_LOGITS
from weights import catalogue
from weights.checkpoint import open_checkpoint
from weights.tokens import load_tokenizer
from weights.training import sources
from weights.training.card import LENS
from weights.training.card_text import LENS_BEFORE_THE_END, readme, two
from weights.training.measures import MEASURED_ON
from weights.training.summary import NAMED
from weights.training.tokenizer import END, whole_words

LARGEST_BYTES = 12_000_000
PROMPTS = [
    "the cat sat on the mat because it was tired.",
    "naïve 🙂 x=1;",
    "Once upon a time there was a little dog" * 56,  # as long as a row of its training, nearly
]


def test_folder_is_small_and_float16(tiny):
    assert sum(path.stat().st_size for path in tiny.iterdir()) <= LARGEST_BYTES
    checkpoint = open_checkpoint(tiny)
    assert {checkpoint.dtype(name) for name in checkpoint.names} == {"F16"}
    assert checkpoint.config["architectures"] == ["Qwen3ForCausalLM"]


def test_catalogue_opens_on_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYGROUND_CACHE", str(tmp_path))
    assert catalogue.default_model() == "tiny"
    entry = catalogue.find("tiny")
    assert entry.problem is None and entry.licence == "Apache-2.0" and entry.family == "qwen3"


@pytest.mark.parametrize("prompt", PROMPTS, ids=["default", "bytes", "long"])
@pytest.mark.filterwarnings("ignore")  # transformers warns about its own defaults
def test_transformers_agrees(tiny, prompt):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ids = load_tokenizer(tiny).encode(prompt)
    assert AutoTokenizer.from_pretrained(tiny)(prompt)["input_ids"] == ids
    theirs = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        expected = theirs(torch.tensor([ids]), output_attentions=True)
    ours = trace(load_model(tiny), ids, include=["pattern", "logits"])
    torch.testing.assert_close(ours["logits"], expected.logits[0], atol=EXPORTED_LOGITS, rtol=0)
    torch.testing.assert_close(
        ours["pattern"], torch.stack([a[0] for a in expected.attentions]), atol=EXPORTED_LOGITS, rtol=0
    )


def test_words_of_the_demonstrations_are_one_token(tiny):
    tokens = load_tokenizer(tiny)
    assert [word for word in whole_words() if len(tokens.encode(word)) != 1] == []
    assert len(tokens.encode("xylophone")) > 1  # control: not every word is


def test_end_token_is_never_typed(tiny):
    tokens = load_tokenizer(tiny)
    assert tokens.decode([0]) == END
    assert 0 not in tokens.encode(f"The end.{END}")


def test_card_states_sources_licences_and_how_to_repeat(card, tiny):
    told = (tiny / "README.md").read_text("utf-8")
    for words in ("CDLA-Sharing-1.0", "out of copyright", "Apache-2.0", "seed", card["commit"][:12]):
        assert words in told
    assert card["data"] == sources.data(text["sha256"] for text in card["texts"])
    assert card["lens"] == LENS
    for text in card["texts"]:
        assert len(text["sha256"]) == 64 and text["sha256"] in told
        assert f"--text {text['name']}" in told, "without its texts the command makes another model"


def test_readme_is_what_the_other_files_say(card, tiny):
    heads = json.loads((tiny / "heads.json").read_text("utf-8"))
    prompts = json.loads((tiny / "prompts.json").read_text("utf-8"))
    assert heads["measured_on"] == MEASURED_ON
    assert (tiny / "README.md").read_text("utf-8") == readme(card, heads["heads"], prompts["prompts"])


FIGURES = """import { figure } from "./static/app/scores.js";
console.log(JSON.stringify(JSON.parse(process.argv[1]).map(figure)));"""


def test_card_and_page_round_alike(tiny, node):
    heads = json.loads((tiny / "heads.json").read_text("utf-8"))["heads"]
    values = [value for head in heads for value in head.values() if isinstance(value, float)]
    assert 0.625 in values, "a value that lies half-way between two decimals"
    values += [0.125, -0.625, 0.005, -0.005, -0.004, 1.0, 2.675]
    asked = [node, "--input-type=module", "-e", FIGURES, "--", json.dumps(values)]
    shown = json.loads(subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert [two(value).replace("-", "\u2212") for value in values] == shown
    assert (two(0.625), two(-0.625), two(-0.004)) == ("0.63", "-0.63", "0.00")


def test_card_says_which_targets_are_missed(card, tiny):
    told = (tiny / "README.md").read_text("utf-8")
    missed = told.partition("missed on ")[2].partition(".\n")[0] if "missed on " in told else ""
    for text, measured in card["measured"]["depth"].items():
        assert (text in missed) == (measured["agreement"][-2] < LENS_BEFORE_THE_END)
    scores = card["measured"]["best"]["duplicate_token"]
    assert ("| duplicate-token head | none" in told) == (scores["score"] < NAMED)


def test_card_never_claims_texts_that_were_not_given(card, tiny):
    heads = json.loads((tiny / "heads.json").read_text("utf-8"))["heads"]
    making = readme({**card, "texts": []}, heads, []).split("## How it was made")[1]
    assert not any(words in making for words in ("TinyStories", "natural text", "--text", "stories"))
    assert sources.data([]) == sources.GRAMMAR
    assert sources.UNKNOWN in sources.data(["0" * 64])


def test_end_of_text_id_is_the_configs(tiny):
    config = json.loads((tiny / "config.json").read_text("utf-8"))
    assert config["eos_token_id"] == 0


def test_opening_says_truly_that_what_comes_after_it_cannot_matter(tiny):
    """Another word after “it” changes no bit of what its row reads, nor of what comes next."""
    prompt = json.loads((tiny / "prompts.json").read_text("utf-8"))["prompts"][0]
    assert "What comes after “it” is not read yet and cannot matter." in prompt["says"]
    tokens, model = load_tokenizer(tiny), load_model(tiny)
    texts = [prompt["text"], prompt["text"].replace("tired", "soft")]
    assert texts[0] != texts[1]
    tired, soft = (trace(model, tokens.encode(text), include=["pattern", "logits"]) for text in texts)
    assert torch.equal(tired["pattern"][:, :, prompt["query"]], soft["pattern"][:, :, prompt["query"]])
    assert torch.equal(tired["logits"][prompt["query"]], soft["logits"][prompt["query"]])
    assert not torch.equal(tired["logits"][-1], soft["logits"][-1])  # control: the last row does read it
