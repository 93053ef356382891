"""How the embedded model is made: corpus, tokenizer, trainer, evaluation, model card. Run `python -m weights.training`.

    grammar/      texts written by rules: pronouns, names, tables, lists, stories; some pairs are kept for the tests
    tokenizer.py  byte-level BPE in which the words of the demonstrations are one token each
    rows.py       documents packed into rows of ids
    network.py    the oracle's model once more, with fused kernels, because the oracle is slow on purpose
    stages.py     the two stages: repeats with a growing vocabulary, then the mix
    evaluate.py   what the heads do, on held-out data; card.py writes it down
"""
