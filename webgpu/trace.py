"""What a finished pass can be asked: patterns, windows, logits, the logit lens, and any intermediate that was recorded.

Nothing of size T x T or L x T x V is kept: each answer is computed from q, k, lse and the residual streams when asked.
Shapes in the notation of the house; log-probabilities are natural. static/gpu/trace.js has the same methods.
"""

from collections import ChainMap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from webgpu import queries
from webgpu.buffers import Buffers
from webgpu.queries import TOP

if TYPE_CHECKING:
    from webgpu.runtime import Model

NO_TARGET = 0xFFFFFFFF
MAX_ANSWER_BYTES = 64 << 20


class BadQuery(ValueError):
    """A question outside this trace: a layer, head, window or name that it does not have."""

    code = "bad-query"


class Trace:
    """One prompt after its prefill. `destroy` frees its buffers."""

    def __init__(self, model: "Model", ids: list[int], buffers: Buffers) -> None:
        self.model, self.ids, self.buffers = model, ids, buffers
        c = model.config
        self.shape = {"L": c.L, "N": c.N, "K": c.K, "T": len(ids), "H": c.H, "D": c.D, "V": c.V}

    def pattern(self, layer: int, head: int) -> np.ndarray:
        """The weights of one head after softmax, float32 [T,T]."""
        T = len(self.ids)
        return self.window(layer, head, 1, 0, T, 0, T, T, T)[0]

    def window(
        self, layer: int, head0: int, heads: int, row0: int, rows: int, col0: int, cols: int, out_rows: int,
        out_cols: int, reduce: str = "max",
    ) -> np.ndarray:  # fmt: skip
        """Part of the patterns of some heads, reduced to pixels: float32 [heads,out_rows,out_cols].

        Pixel (i,j) is the largest ("max") or the "mean" of the cells from row0 + floor(i*rows/out_rows) up to the next
        pixel's (at least one), columns alike. Raises BadQuery outside the pattern.
        """
        T = len(self.ids)
        self.within("layer", layer, 1, self.shape["L"])
        self.within("head", head0, heads, self.shape["N"])
        self.within("row", row0, rows, T)
        self.within("column", col0, cols, T)
        self.within("out_rows", 0, out_rows, 1 << 20)
        self.within("out_cols", 0, out_cols, 1 << 20)
        check_reduce(reduce)
        if (rows, cols) == (out_rows, out_cols):  # every pixel one cell: rows can be had piece by piece
            at_once = max(1, MAX_ANSWER_BYTES // (4 * heads * cols))
            parts = [(row, min(at_once, row0 + rows - row)) for row in range(row0, row0 + rows, at_once)]
        else:
            parts = [(row0, rows)]
        answers = []
        for start, count in parts:
            pixels = count if len(parts) > 1 else out_rows
            plan = queries.window(
                self.model.config, self.model.placed, layer=layer, T=T, head0=head0, heads=heads, row0=start,
                rows=count, col0=col0, cols=cols, out_rows=pixels, out_cols=out_cols, reduce=reduce,
                choice=self.model.choice,
            )  # fmt: skip
            answers.append(self.ask(plan, {"window": ("float32", (heads, pixels, out_cols))})["window"])
        return np.concatenate(answers, axis=1)

    def thumbnails(self, out: int, reduce: str = "max") -> Iterator[tuple[int, np.ndarray]]:
        """Every head's whole pattern as out x out pixels (see `window`), some layers at a time.

        Yields (first layer, float32 [layers,N,out,out]); each is one readback. Raises BadQuery.
        """
        model, T, (L, N) = self.model, len(self.ids), (self.shape["L"], self.shape["N"])
        self.within("out", 0, out, T)
        check_reduce(reduce)
        at_once, words = queries.layers_per_query(model.config, T, out), queries.thumbnail_words(model.config, out)
        for layer0 in range(0, L, at_once):
            layers = min(at_once, L - layer0)
            plan = queries.thumbnails(
                model.config, model.placed, layer0=layer0, layers=layers, T=T, out=out, reduce=reduce,
                choice=model.choice,
            )  # fmt: skip
            slots = self.ask(plan, {"thumbnails": ("float32", (layers, words))})["thumbnails"]
            yield layer0, slots[:, : N * out * out].reshape(layers, N, out, out)

    def logits(self, position: int) -> np.ndarray:
        """The next-token logits at one position, float32 [V]."""
        self.within("position", position, 1, len(self.ids))
        return self.output_rows("logits", position, 1)[0]

    def lens_rows(self, layer: int, row0: int, rows: int, target: int | None = None) -> dict[str, np.ndarray]:
        """Logit lens of the residual stream entering `layer` (L: leaving the last one), positions row0 ...

        -> ids and logprobs [rows,10] best first; entropy (nats), lse, target_logprob, target_rank [rows] (0 = best;
        without a target NaN and -1).
        """
        return self.lens_at([(layer, row0, rows)], target)

    def lens_at(self, sources: list[tuple[int, int, int]], target: int | None = None) -> dict[str, np.ndarray]:
        """The same of rows of several layers, (layer, row0, rows) one after the other."""
        for layer, row0, rows in sources:
            self.within("layer", layer, 1, self.shape["L"] + 1)
            self.within("position", row0, rows, len(self.ids))
        return self.lens_of(sources, target)

    def lens(self) -> dict[str, np.ndarray]:
        """The whole logit lens: ids int32 and logprobs float32 [L+1,T,10]."""
        L, T = self.shape["L"], len(self.ids)
        answer = self.lens_of([(layer, 0, T) for layer in range(L + 1)])
        return {
            "ids": answer["ids"].astype(np.int32).reshape(L + 1, T, TOP),
            "logprobs": answer["logprobs"].reshape(L + 1, T, TOP),
        }

    def ranks(self, position: int, target: int) -> np.ndarray:
        """Rank of a token through depth at one position, uint32 [L+1]; 0 = most likely."""
        self.within("position", position, 1, len(self.ids))
        answer = self.lens_of([(layer, position, 1) for layer in range(self.shape["L"] + 1)], target)
        return answer["target_rank"].astype(np.uint32)

    def read(self, name: str, layer: int | None = None) -> np.ndarray:
        """A named intermediate: of one layer, or of the whole model when `layer` is None.

        Always there: token_ids, embed, final_norm, logits, and per layer q, k, v, lse, pattern, resid_pre, resid_post.
        The others (z, resid_mid, ...) need `run(..., record=True)`. Raises BadQuery for what is not there.
        """
        T, c = len(self.ids), self.model.config
        if layer is None:
            if name == "token_ids":
                return np.array(self.ids, np.int32)
            if name == "embed":
                return self.kept("resid.0", (T, c.D))
            if name in ("final_norm", "logits"):
                return self.output_rows(name, 0, T)
            raise BadQuery(f"There is no model-wide {name!r}: allowed are token_ids, embed, final_norm, logits.")
        self.within("layer", layer, 1, c.L)
        if name == "pattern":
            return self.window(layer, 0, c.N, 0, T, 0, T, T, T)
        if name in ("resid_pre", "resid_post"):
            return self.kept(f"resid.{layer + (name == 'resid_post')}", (T, c.D))
        buffer, width, column = self.part_of(name)
        shape = self.widths().get(name, ())
        if buffer == name:
            return self.kept(f"{name}.{layer}", shape)
        rows = self.kept(f"{buffer}.{layer}", (T, width), name)
        return rows[:, column : column + int(np.prod(shape[1:]))].reshape(shape)

    def part_of(self, name: str) -> tuple[str, int, int]:
        """Where an intermediate lies: in which buffer, how wide its rows are, and from which column on."""
        c = self.model.config
        query, both, every = (heads * c.H for heads in (c.N, c.N + c.K, c.N + 2 * c.K))
        return {
            "q_proj": ("qkv", every, 0),
            "k_proj": ("qkv", every, query),
            "q_normed": ("qk_normed", both, 0),
            "k_normed": ("qk_normed", both, query),
            "gate": ("gate_up", 2 * c.F, 0),
            "up": ("gate_up", 2 * c.F, c.F),
        }.get(name, (name, 0, 0))

    def widths(self) -> dict[str, tuple[int, ...]]:
        """Shape of each per-layer intermediate."""
        T, c = len(self.ids), self.model.config
        query, key, wide, narrow = (T, c.N, c.H), (T, c.K, c.H), (T, c.F), (T, c.D)
        shapes = {"lse": (c.N, T)}
        shapes |= dict.fromkeys(("q", "q_proj", "q_normed", "z"), query)
        shapes |= dict.fromkeys(("k", "k_proj", "k_normed", "v"), key)
        shapes |= dict.fromkeys(("gate", "up", "act"), wide)
        return shapes | dict.fromkeys(("attn_norm", "attn_out", "resid_mid", "mlp_norm", "mlp_out"), narrow)

    def destroy(self) -> None:
        """Free this trace's buffers."""
        self.buffers.destroy()

    # How answers are made

    def kept(self, buffer: str, shape: tuple[int, ...], name: str | None = None) -> np.ndarray:
        if buffer not in self.buffers or not shape:
            name = name or buffer.partition(".")[0]
            raise BadQuery(f"This trace has no {name!r}: run the prompt with record=True for all names.")
        return self.model.kernels.read(self.buffers[buffer], "float32", shape)

    def within(self, what: str, start: int, count: int, end: int) -> None:
        if not (start >= 0 and count >= 1 and start + count <= end):
            raise BadQuery(f"{what} {start} + {count} is outside this trace: allowed are 0 to {end - 1}.")

    def output_rows(self, name: str, row0: int, rows: int) -> np.ndarray:
        """`final_norm` or `logits` after the last layer, of any number of rows."""
        c, answers = self.model.config, []
        for batch in batches([(c.L, row0, rows)], queries.rows_per_query(c)):
            shape = (count_rows(batch), c.D if name == "final_norm" else c.V)
            plan = queries.logits(c, self.model.placed, sources=batch, choice=self.model.choice)
            answers.append(self.ask(plan, {name: ("float32", shape)})[name])
        return np.concatenate(answers)

    def lens_of(self, sources: list[tuple[int, int, int]], target: int | None = None) -> dict[str, np.ndarray]:
        """Lens of any rows of any layers, in batches that keep a submit short."""
        c = self.model.config
        if target is not None and not 0 <= target < c.V:
            raise BadQuery(f"Target {target} is outside the vocabulary: allowed are 0 to {c.V - 1}.")
        answer = self.lens_plain if c.D % 8 else self.lens_fused
        parts = [answer(batch, target) for batch in batches(sources, queries.rows_per_query(c))]
        ids, logits, stats = (np.concatenate(column) for column in zip(*parts, strict=True))
        lse = stats[:, 0]
        return {
            "ids": ids,
            "logprobs": logits - lse[:, None],
            "lse": lse,
            "entropy": stats[:, 1],
            "target_logprob": stats[:, 2] - lse if target is not None else np.full(len(lse), np.nan, np.float32),
            "target_rank": stats[:, 3].astype(np.int32),
        }

    def lens_fused(self, batch: list[tuple[int, int, int]], target: int | None) -> tuple[np.ndarray, ...]:
        """ids, logits [R,10] and stats [R,4] by the lens kernels."""
        rows = count_rows(batch)
        plan = queries.lens(self.model.config, self.model.placed, sources=batch, choice=self.model.choice)
        targets = np.full(rows, NO_TARGET if target is None else target, np.uint32)
        wanted = {
            "lens_ids": ("uint32", (rows, TOP)),
            "lens_logits": ("float32", (rows, TOP)),
            "lens_stats": ("float32", (rows, 4)),
        }
        return tuple(self.ask(plan, wanted, {"targets": targets}).values())

    def lens_plain(self, batch: list[tuple[int, int, int]], target: int | None) -> tuple[np.ndarray, ...]:
        """The same from whole logits, for widths that are no multiple of 8 (no trained model has one)."""
        c, V = self.model.config, self.model.config.V
        plan = queries.logits(c, self.model.placed, sources=batch, choice=self.model.choice)
        logits = self.ask(plan, {"logits": ("float32", (count_rows(batch), V))})["logits"]
        ids = np.argsort(-logits, axis=1, kind="stable")[:, :TOP]
        wide = logits.astype(np.float64) - logits.max(1, keepdims=True)
        total = np.exp(wide).sum(1)
        entropy = np.log(total) - (np.exp(wide) * wide).sum(1) / total
        stats = np.stack([logits.max(1) + np.log(total), entropy, np.full(len(total), -1e30), -np.ones(len(total))], 1)
        if target is not None:
            mine = logits[:, target : target + 1]
            stats[:, 2] = mine[:, 0]
            stats[:, 3] = (logits > mine).sum(1) + (logits[:, :target] == mine).sum(1)
        return ids.astype(np.uint32), np.take_along_axis(logits, ids, 1), stats.astype(np.float32)

    def ask(
        self, plan: Any, wanted: dict[str, tuple[str, tuple[int, ...]]], given: dict[str, np.ndarray] | None = None
    ):
        """Run a query on buffers of its own and read the wanted ones back."""
        scratch = Buffers(self.model.kernels, plan.buffers)
        try:
            for name, values in (given or {}).items():
                self.model.kernels.write(scratch[name], values)
            for _ in self.model.run_steps(plan, ChainMap(scratch, self.buffers)):
                pass
            return {name: self.model.kernels.read(scratch[name], *kind) for name, kind in wanted.items()}
        finally:
            scratch.destroy()


def check_reduce(reduce: str) -> None:
    """Refuse what is neither the largest nor the mean of a pixel's cells."""
    if reduce not in ("max", "mean"):
        raise BadQuery(f'reduce is {reduce!r}: allowed are "max" and "mean".')


def count_rows(sources: list[tuple[int, int, int]]) -> int:
    """Rows in all of (layer, row0, rows)."""
    return sum(rows for _, _, rows in sources)


def batches(sources: list[tuple[int, int, int]], most: int) -> list[list[tuple[int, int, int]]]:
    """Regroup (layer, row0, rows) so that each batch has at most `most` rows, in the same order."""
    every: list[list[tuple[int, int, int]]] = []
    room = 0
    for layer, row0, rows in sources:
        start = row0
        while start < row0 + rows:
            if room == 0:
                every.append([])
                room = most
            take = min(row0 + rows - start, room)
            every[-1].append((layer, start, take))
            start, room = start + take, room - take
    return every
