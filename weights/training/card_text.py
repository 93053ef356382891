"""README.md of the model: the card's figures as text and tables. Nothing here is written by hand after a run."""

from decimal import ROUND_HALF_UP, Decimal

from weights.training.measures import MEASURED_ON
from weights.training.sources import what
from weights.training.summary import NAMED

LENS_BEFORE_THE_END, STORY_NATS = 0.75, 2.9  # wanted; the lens on every text


def two(value: float) -> str:
    """Two decimals as the page writes them (static/app/scores.js): halves away from 0, never a lone -0."""
    rounded = Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return str(abs(rounded) if rounded.is_zero() else rounded)


def readme(card: dict, heads: list[dict], prompts: list[dict]) -> str:
    """The whole text."""
    parts = [_opening(card), _figures(card), _depth(card), _heads(heads), _prompts(prompts), _samples(card)]
    return "\n\n".join([*parts, _making(card), _limits(card)]) + "\n"


def _opening(card: dict) -> str:
    shape = card["recipe"]["shape"]
    return (
        "# Tiny\n\n"
        f"A language model of {card['parameters'] / 1e6:.1f} million parameters ({shape['L']} layers of width "
        f"{shape['D']}, {shape['N']} query heads sharing {shape['K']} key/value heads of {shape['H']} dimensions, "
        f"{shape['V']} tokens), trained so that its heads are legible: the corpus needs them. It writes very simple "
        "English and knows nothing. This page was generated from measurements."
    )


def _figures(card: dict) -> str:
    measured = card["measured"]
    figures, best, prompt = measured["figures"], measured["best"], measured["default_prompt"]
    rows = [
        ("random tokens of the whole vocabulary, again after 48", "accuracy", figures["repeats_accuracy"], ".95"),
        ("previous-token head", _at(best["previous_token"]), best["previous_token"]["score"], ".80"),
        ("induction head", _at(best["induction"]), best["induction"]["score"], ".70"),
        ("duplicate-token head", _if_any(best["duplicate_token"]), best["duplicate_token"]["score"], "if any"),
        ("next word after it, she, he, they; three candidates", "accuracy", figures["pronoun_accuracy"], ".97"),
        ("head that finds the antecedent", _at(best["selectivity"]), best["selectivity"]["score"], ".70"),
        ('default prompt, "it" on "cat"', _at(prompt), prompt["it_to_cat"], ".50"),
        ('default prompt, "it" on "mat"', _at(prompt), prompt["it_to_mat"], "at most .10"),
        ("the same head on random orders", _at(prompt), prompt["selectivity"], ".70"),
        ("SQL, three tables: column after AND", "accuracy", figures["column_after_and"], ".90"),
        ("SQL, three tables: column after ORDER BY", "accuracy", figures["column_after_by"], ".90"),
        ("table look-up head across the gap", _at(best["look_up"]), best["look_up"]["score"], "reported"),
        ("name of who receives", "accuracy", figures["name_accuracy"], ".97"),
        ("head that finds a receiver named first", *_found(best["receiver_first"]), "reported"),
        ("head that finds a receiver named second", *_found(best["receiver_second"]), "reported"),
    ]
    lines = [f"| {what} | {where} | {value:.3f} | {target} |" for what, where, value, target in rows]
    return "\n".join(
        [
            "## What it does, on texts that training never saw",
            "| measure | where | value | target |",
            "|---|---|---|---|",
            *lines,
            "",
            "Scores are defined in `python_ref/heads.py`. Selectivity is the weight on the right candidate minus the "
            "best wrong one, at the place of the antecedent where it is weakest. The look-up is measured at AND and "
            "at BY, with the schema several tokens away, among heads that are not previous-token heads. Held-out "
            "texts of the grammar join words that no training text of the same kind joins.",
        ]
    )


def _found(best: dict) -> tuple[str, float]:
    return _at(best), best["score"]


def _if_any(found: dict) -> str:
    return _at(found) if found["score"] >= NAMED else f"none; the highest is {_at(found)}"


def _at(found: dict) -> str:
    layer, head = found["head"]
    return f"layer {layer}, head {head}"


def _depth(card: dict) -> str:
    lines = ["## Through depth", "| text | measure | embedding | " + " | ".join(
        f"after layer {layer}" for layer in range(card["recipe"]["shape"]["L"])) + " |"]
    lines.append("|" + "---|" * (card["recipe"]["shape"]["L"] + 3))
    for text, depths in card["measured"]["depth"].items():
        for name, values in depths.items():
            words = {"agreement": "lens agrees with the answer", "cross_entropy": "nats per token"}[name]
            lines.append(f"| {text} | {words} | " + " | ".join(two(value) for value in values) + " |")
    lines += [
        "",
        _lens_verdict(card),
        "",
        "The embedding row only echoes the current token: embedding and unembedding are one matrix. In training a "
        "quarter of the positions also predicted the next token from an earlier layer, through the same norm and "
        "unembedding; that is why the layers before the last speak so clearly here. Other models are not like that.",
    ]
    return "\n".join(lines)


def _lens_verdict(card: dict) -> str:
    """Which texts meet what was wanted of the lens and of the stories' cost, and which do not."""
    depth = card["measured"]["depth"]
    before = {text: measured["agreement"][-2] for text, measured in depth.items()}
    met = [f"{text} ({share:.3f})" for text, share in before.items() if share >= LENS_BEFORE_THE_END]
    missed = [f"{text} ({share:.3f})" for text, share in before.items() if share < LENS_BEFORE_THE_END]
    parts = [f"met on {', '.join(met)}" if met else "", f"missed on {', '.join(missed)}" if missed else ""]
    words = f"Wanted one layer before the end: agreement of {LENS_BEFORE_THE_END}; {'; '.join(filter(None, parts))}."
    for text, measured in depth.items():
        if text.startswith("tinystories"):
            nats = measured["cross_entropy"][-1]
            verdict = "met" if nats <= STORY_NATS else "missed"
            words += f" Wanted of TinyStories: at most {STORY_NATS} nats per token; {verdict}, {two(nats)}."
    return words


def _heads(heads: list[dict]) -> str:
    scores = [name for name in heads[0] if name not in ("layer", "head", "called")]
    lines = ["## Every head", "| head | " + " | ".join(name.replace("_", " ") for name in scores) + " | called |"]
    lines.append("|" + "---|" * (len(scores) + 2))
    for entry in heads:
        numbers = " | ".join(two(entry[name]) for name in scores)
        lines.append(f"| L{entry['layer']} H{entry['head']} | {numbers} | {', '.join(entry['called']) or ' '} |")
    named = {on: [s.replace("_", " ") for s in scores if MEASURED_ON[s] == on] for on in MEASURED_ON.values()}
    measured = "; ".join(f"{', '.join(names)} on {on}" for on, names in named.items())
    return "\n".join([*lines, "", f"Measured: {measured}."])


def _prompts(prompts: list[dict]) -> str:
    lines = ["## Prompts to begin with"]
    for prompt in prompts:
        text = prompt["text"].replace("\n", " ")
        lines.append(f"- `{text}`: {prompt['says']} Weight {two(prompt['weight'])}; next comes `{prompt['next']}`.")
    return "\n".join(lines)


def _samples(card: dict) -> str:
    lines = ["## Samples, as they came", "Temperature 0.7, the 40 likeliest tokens, at most 30 of them."]
    for sample in card["samples"]:
        text = sample["text"].replace("\n", " ")
        lines.append(f"- seed {sample['seed']}: **{sample['prompt']}**{text[len(sample['prompt']):]}")
    return "\n".join(lines)


def _making(card: dict) -> str:
    recipe = card["recipe"]
    mixed = " and ".join(str(mix["steps"]) for mix in recipe["mixes"])
    texts = [
        f"| {text['name']} | {what(text['sha256'])} | {text['sha256']} | {text['held_out']} parts |"
        for text in card["texts"]
    ] or ["| none: the grammar alone | | | |"]
    command = " ".join(["python -m weights.training train", *(f"--text {text['name']}" for text in card["texts"])])
    return "\n".join(
        [
            "## How it was made",
            f"`{command}`, seed {recipe['seed']}, commit {card['commit'][:12]}, torch "
            f"{card['torch']}, {card['training_minutes']:.0f} minutes on {card['cores']} shared CPU cores in float32. "
            f"Stage one: {recipe['repeats']['steps']} steps of repeated random tokens, vocabulary doubling from "
            f"{recipe['repeats']['first']}, attention alone. Stage two: {mixed} steps of "
            f"{'natural text, ' if card['texts'] else ''}the grammar in `weights/training/grammar`, and repeats. Muon "
            "for matrices, AdamW for the rest.",
            "",
            "| text | what it is | SHA-256 | held out |",
            "|---|---|---|---|",
            *texts,
            "",
            "The texts are not part of this repository; the grammar is ours. The weights are under this project's "
            "licence, Apache-2.0. SHA-256 of model.safetensors: "
            f"`{card['sha256']['model.safetensors']}`.",
        ]
    )


def _limits(card: dict) -> str:
    positions = card["recipe"]["shape"]["positions"]
    return (
        "## What it is not\n"
        f"It saw at most {positions} tokens at a time and is lost beyond that. It has no facts, no other language, no "
        "arithmetic, and repeats what its training texts say. A head's name is where its score is "
        "high on these texts, not all that the head does."
    )
