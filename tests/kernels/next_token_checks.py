"""The lists of the next token's logits and the choice among them, against the row sorted and sums in float64."""

import numpy as np

from tests.kernels.checks import agree
from tests.kernels.drivers import Job
from webgpu import next_token

LISTS, WORDS = next_token.LISTS, next_token.LIST_WORDS


def check_next_token(driver, V, temperature=1.0, magnitude=5.0) -> None:
    """Lists hold their share's best in order, ties by id; sums agree; the likeliest token and its log-probability."""
    rng = np.random.default_rng(V)
    logits = rng.standard_normal(V, "f4") * np.float32(magnitude)
    if V > 2:
        logits[V // 2] = logits[V - 1] = logits.max() + np.float32(1)  # the best has a twin in another list
        logits[[1, min(1 + 4 * LISTS, V - 2)]] = logits.max()  # and others in one list
    dispatches = [
        next_token.candidates("logits", "best", V=V, temperature=temperature),
        next_token.choose("best", "ids", "token"),
    ]
    outputs = {"best": ("u4", (LISTS, WORDS)), "ids": ("u4", (1,)), "token": ("u4", (next_token.TOKEN_WORDS,))}
    got = driver.run(Job(dispatches, {"logits": logits}, outputs))
    best, heat = got["best"], 1 / temperature if temperature else 1
    exact, plain = lists_of(logits, heat), lists_of(logits, heat, "f4")
    assert np.array_equal(best[:, 12:], exact[:, 12:]), "lists hold other tokens"
    for name, columns in (("logits", slice(4, 12)), ("largest logits", slice(0, 1))):  # as numbers: 0 is -0
        pair = (np.ascontiguousarray(each[:, columns]).view("f4") for each in (best, exact))
        assert np.array_equal(*pair), f"lists have other {name}"
    for name, at in (("s", 1), ("h", 2)):
        columns = (np.ascontiguousarray(each[:, at]).view("f4") for each in (best, exact, plain))
        agree(f"sums {name}", *columns)
    first, z = int(logits.argmax()), logits.astype("f8")
    lse = z.max() + np.log(np.exp(z - z.max()).sum())
    assert got["ids"][0] == got["token"][0] == first, "another token was chosen"
    assert got["token"][1:2].view("f4") == logits[first]
    agree("lse", got["token"][2:3].view("f4"), np.array([lse]), np.array([lse], "f4"))


def lists_of(logits, heat, dtype="f8") -> np.ndarray:
    """What candidates.wgsl says of a row, [LISTS, WORDS] u4; its sums added in this precision."""
    lists = np.zeros((LISTS, WORDS), "u4")
    lists[:, 4:12], lists[:, 12:] = np.float32(-1e30).view("u4"), 0xFFFFFFFF
    lists[:, 0] = np.float32(-1e30).view("u4")
    for i, own in enumerate(np.arange(LISTS)[:, None] == np.arange(len(logits)) // 4 % LISTS):
        order = np.flatnonzero(own)
        order = order[np.argsort(-logits[order], kind="stable")]
        if len(order):
            z = (logits[order] - logits[order[0]]).astype(dtype)
            sums = [np.exp(z).sum(dtype=dtype), np.exp(z * np.dtype(dtype).type(heat)).sum(dtype=dtype)]
            lists[i, :3] = np.array([logits[order[0]], *sums], "f4").view("u4")
        lists[i, 4 : 4 + len(order[:8])] = logits[order[:8]].view("u4")
        lists[i, 12 : 12 + len(order[:8])] = order[:8]
    return lists
