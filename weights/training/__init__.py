"""How the embedded model is made: corpus, tokenizer, trainer, evaluation, model card. Run `python -m weights.training`.

    grammar/      texts written by rules: pronouns, names, tables, lists, stories; some pairs are kept for the tests
    tokenizer.py  byte-level BPE in which the words of the demonstrations are one token each
    rows.py       documents packed into rows of ids
    network.py    the oracle's model once more, with fused kernels, because the oracle is slow on purpose
    recipe.py     the stages: repeats with a growing vocabulary, then mixes of natural text, grammar and repeats
    evaluate.py   what the heads do, on held-out data; card.py writes it down
"""
