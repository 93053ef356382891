"""Through depth: how early the lens agrees with the answer, what each layer's prediction costs, and free samples."""

from random import Random

import torch
from torch import Tensor

from weights.training.grammar import pronouns, recall, tables
from weights.training.probe import Probe

SAMPLE_PROMPTS = (
    "Once upon a time there was a little dog",
    "One day, Tom and Lily went to the park.",
    "The king was sad because",
    "Mom said,",
)


def held_out_documents(seed: int = 15, each: int = 20) -> list[str]:
    """Texts of the grammar whose words were kept from training."""
    r, texts = Random(seed), []
    for _ in range(each):
        texts.append(pronouns.choice(r, held_out=True).text)
        texts.append(pronouns.seat(r, held_out=True))
        text, receiver = recall.gift(r, held_out=True)
        texts.append(f"{text} {receiver}.")
        schema = tables.schema(r, held_out=True)
        texts.append(f"{schema.text}\n{tables.query(r, schema)}")
    return texts


@torch.inference_mode()
def through_depth(probe: Probe, texts: list[str]) -> dict[str, list[float]]:
    """Per depth, embedding first: share of positions whose likeliest token is the final one, and cross-entropy in nats.

    Texts longer than the model's positions are cut. Means are over all positions of all texts.
    """
    agreed, nats, seen = None, None, 0
    for text in texts:
        ids = probe.tokens.encode(text)[: probe.positions]
        logits = probe.lens(ids)[:, :-1]  # [L + 1, T - 1, V]
        agree = (logits.argmax(-1) == logits[-1].argmax(-1)).sum(-1)
        loss = _nats(logits, ids[1:])
        agreed, nats = (agree, loss) if agreed is None else (agreed + agree, nats + loss)
        seen += len(ids) - 1
    if not seen:
        raise ValueError("The held-out texts hold no two tokens in a row, so nothing is predicted; give a longer text.")
    return {"agreement": (agreed / seen).tolist(), "cross_entropy": (nats / seen).tolist()}


def _nats(logits: Tensor, targets: list[int]) -> Tensor:
    """Summed cross-entropy per depth. logits [L + 1, T, V] -> [L + 1]."""
    wanted = torch.tensor(targets)[None, :, None].expand(logits.shape[0], -1, 1)
    return (logits.logsumexp(-1) - logits.gather(-1, wanted)[..., 0]).sum(-1)


@torch.inference_mode()
def sample(probe: Probe, prompt: str, seed: int, tokens: int = 30, temperature: float = 0.7, top: int = 40) -> str:
    """A continuation drawn from the `top` likeliest tokens; it ends where the model ends it."""
    generator = torch.Generator().manual_seed(seed)
    ids = probe.tokens.encode(prompt)
    for _ in range(tokens):
        logits = probe.model(torch.tensor([ids]))[0, -1]
        values, best = logits.topk(top)
        odds = (values / temperature).softmax(-1)
        ids.append(int(best[torch.multinomial(odds, 1, generator=generator)]))
        if ids[-1] in probe.tokens.special:
            break
    return probe.tokens.decode(ids)
