"""The forward pass as data: which buffers exist and which kernels run on them, in order. Nothing here touches a device.

    forward(...)    tokens offset .. offset+T-1 through all layers, against caches that hold the earlier ones
    prefill(...)    a prompt as a row of forwards of at most CHUNK_TOKENS, so that memory and submits stay small
What alone would pass the work of a submit is cut (webgpu/slices.py).
`choice` names a variant (webgpu/variants.py) for an operation; what it does not name runs on the first.
`keep` says which intermediates outlive the pass, each layer its own buffer `name.layer` with a row per token; the
others share one scratch buffer `name`. Memory grows linearly in tokens. What is asked of a finished pass is in
webgpu/queries.py. `static/gpu/plan.js` mirrors this and a test holds the two lists equal.

A binding is a buffer's name, or `name@start+bytes` for a part of it (start a multiple of 256).
The residual stream entering layer l is `resid.l`; `resid.L` is what leaves the last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from webgpu import ops
from webgpu.config import Config
from webgpu.layout import EMBED, HEAD, NORM
from webgpu.next_token import next_token
from webgpu.pieces import STACKS, Placed, padded, runs
from webgpu.slices import chunks

# A multiple of 64, so that every chunk's rows start on a multiple of 256 bytes whatever their width.
CHUNK_TOKENS = 256
# Work of one submit: well under 100 ms on a slow GPU, about 100 ms on a CPU that stands in for one.
SUBMIT_FLOPS = 500_000_000

ZERO = "zero"  # what a Copy reads to clear a buffer

CACHE = frozenset({"k", "v"})
TRACE = frozenset({"q", "k", "v", "lse", "resid"})
RECORD = TRACE | {
    "attn_norm", "qkv", "qk_normed", "z", "attn_out", "resid_mid", "mlp_norm", "gate_up", "act", "mlp_out",
}  # fmt: skip


@dataclass(frozen=True)
class Copy:
    """Bytes moved before a step's dispatches: rows of a kept buffer into scratch, at any 4-byte offset.

    The source ZERO stands for zeros.
    """

    source: str
    source_start: int
    target: str
    target_start: int
    bytes: int


@dataclass
class Step:
    """What goes to the device in one submit. flops: about how much work it is, for progress."""

    copies: list[Copy] = field(default_factory=list)
    dispatches: list[ops.Dispatch] = field(default_factory=list)
    flops: int = 0


class Builder:
    """Collects buffers and steps; a step ends when its work passes `submit_flops` (None: never).

    choice: operation -> variant (webgpu/variants.py); what is not named runs on the first.
    """

    def __init__(
        self, config: Config, placed: Mapping[str, Placed], submit_flops: int | None = SUBMIT_FLOPS,
        choice: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.config, self.placed, self.submit_flops, self.choice = config, placed, submit_flops, choice or {}
        self.buffers: dict[str, int] = {}
        self.steps: list[Step] = [Step()]

    def buffer(self, name: str, count: int) -> str:
        """Ask for a buffer of at least `count` 4-byte words."""
        self.buffers[name] = max(self.buffers.get(name, 0), padded(4 * count))
        return name

    def copy(self, source: str, source_start: int, target: str, target_start: int, count_bytes: int) -> None:
        """Copy bytes before the dispatches that follow."""
        if self.steps[-1].dispatches:
            self.steps.append(Step())
        self.steps[-1].copies.append(Copy(source, source_start, target, target_start, count_bytes))

    def clear(self, name: str) -> None:
        """Fill a whole buffer with zeros before the dispatches that follow."""
        self.copy(ZERO, 0, name, 0, self.buffers[name])

    def emit(
        self, dispatches: ops.Dispatch | list[ops.Dispatch], flops: int, before: Sequence[ops.Dispatch] = ()
    ) -> None:
        """Append dispatches that together do about `flops` operations.

        before: what has to run earlier in the same submit, because others may run between two.
        """
        step = self.steps[-1]
        if self.submit_flops is not None and step.dispatches and step.flops + flops > self.submit_flops:
            step = Step()
            self.steps.append(step)
        step.dispatches += [each for each in before if not any(each is there for there in step.dispatches)]
        step.dispatches += dispatches if isinstance(dispatches, list) else [dispatches]
        step.flops += flops

    def norm(self, x: str, weight: str, out: str, rows: int, width: int, **heads: int) -> str:
        """RMSNorm of `rows` rows; heads: those of QK-norm, see ops.rmsnorm."""
        how = {"eps": self.config.eps, "variant": self.choice.get("norm"), **heads}
        dispatch = ops.rmsnorm(x=x, weight=weight, out=out, rows=rows, width=width, **how)
        self.emit(dispatch, 4 * rows * width)
        return out

    def product(self, x: str, tensors: Sequence[str], out: str, T: int, residual: str = ops.NONE) -> str:
        """x [T,d_in] times weight matrices, whose columns lie side by side in rows of out, with their biases; plus
        residual, which lies as out does; large ones in slices."""
        weights = [self.placed[tensor] for tensor in tensors]
        biases = [self.placed[bias] for tensor in tensors if (bias := bias_of(tensor)) in self.placed]
        d_in, across, col0 = weights[0].shape[1], sum(weight.shape[0] for weight in weights), 0
        most_rows = max(across if self.submit_flops is None else self.submit_flops // (2 * T * d_in), 1)
        for run, bias in zip_longest(runs(weights, most_rows), runs(biases, most_rows)):
            dispatch = ops.matmul(
                x=x, weight=run.weight, bias=bias.weight if bias else None, out=out, T=T, d_in=d_in, d_out=run.rows,
                fmt=run.fmt, scales=run.scales, out_col0=col0, out_stride=across, residual=residual,
                variant=self.choice.get(ops.product_operation(T)),
            )  # fmt: skip
            self.emit(dispatch, 2 * T * d_in * run.rows)
            col0 += run.rows
        return out

    def head(self) -> str:
        """The tensor that turns the last residual stream into logits."""
        return EMBED if self.config.tied else HEAD

    def logits(self, x: str, rows: int) -> str:
        """Final norm and unembedding of `rows` rows of residual stream: logits [rows,V]."""
        normed = self.norm(x, NORM, self.buffer("final_norm", rows * self.config.D), rows, self.config.D)
        return self.product(normed, [self.head()], self.buffer("logits", rows * self.config.V), rows)


class Forward(Builder):
    """One forward of T tokens at `offset`, with caches of `capacity` rows."""

    def __init__(
        self, config: Config, placed: Mapping[str, Placed], T: int, offset: int, capacity: int, keep, choice=None,
        submit_flops: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(config, placed, None if T == 1 else submit_flops or SUBMIT_FLOPS, choice)
        self.T, self.offset, self.capacity, self.keep = T, offset, capacity, keep

    def rows(self, name: str, layer: int, width: int) -> str:
        """The binding for this forward's rows [T,width] of an intermediate, kept or scratch."""
        if name not in self.keep:
            return self.buffer(name, self.T * width)
        buffer = self.buffer(f"{name}.{layer}", self.capacity * width)
        start = 4 * width * self.offset
        return buffer if start == 0 else f"{buffer}@{start}+{padded(4 * width * self.T)}"

    def embed(self) -> None:
        """Token ids to resid.0."""
        c, T = self.config, self.T
        ids, out = self.buffer("ids", T), self.rows("resid", 0, c.D)
        for piece in self.placed[EMBED].pieces:
            dispatch = ops.embedding(
                ids=ids, table=piece.buffer, out=out, T=T, D=c.D, v0=piece.row0, v_count=piece.rows,
                fmt=self.placed[EMBED].fmt, scales=piece.scales,
            )  # fmt: skip
            self.emit(dispatch, T * c.D)

    def layer(self, layer: int) -> None:
        """One block: resid.l to resid.l+1."""
        c, T, at = self.config, self.T, f"model.layers.{layer}."
        x = self.rows("resid", layer, c.D)
        norm = self.norm(x, at + "input_layernorm.weight", self.rows("attn_norm", layer, c.D), T, c.D)
        z = self.attention(layer, norm)
        mid = self.add_product(layer, "attn_out", at + "self_attn.o_proj", z, x, self.rows("resid_mid", layer, c.D))
        norm = self.norm(mid, at + "post_attention_layernorm.weight", self.rows("mlp_norm", layer, c.D), T, c.D)
        gate_up = self.product(norm, stacked(at, "mlp.gate_up_proj"), self.rows("gate_up", layer, 2 * c.F), T)
        act = self.rows("act", layer, c.F)
        self.emit(ops.swiglu(gate_up=gate_up, out=act, T=T, F=c.F), 8 * T * c.F)
        self.add_product(layer, "mlp_out", at + "mlp.down_proj", act, mid, self.rows("resid", layer + 1, c.D))

    def add_product(self, layer: int, name: str, tensor: str, x: str, residual: str, out: str) -> str:
        """The residual stream plus a product. If the product itself is to be kept, it is made once more by itself."""
        if name in self.keep:
            self.product(x, [tensor + ".weight"], self.rows(name, layer, self.config.D), self.T)
        return self.product(x, [tensor + ".weight"], out, self.T, residual)

    def attention(self, layer: int, x: str) -> str:
        """Normed residual stream to z: projections, QK-norm, rotation, caches, attention."""
        c, T, at = self.config, self.T, f"model.layers.{layer}."
        heads, stride = c.N + c.K, (c.N + 2 * c.K) * c.H
        qkv = self.product(x, stacked(at, "self_attn.qkv_proj"), self.rows("qkv", layer, stride), T)
        qk, qk_stride = qkv, stride
        if c.qk_norm:
            qk, qk_stride = self.rows("qk_normed", layer, heads * c.H), heads * c.H
            weight = at + "self_attn.qk_norm.weight"
            self.norm(qkv, weight, qk, T * heads, c.H, heads=heads, N=c.N, stride=stride)
        q = self.rows("q", layer, c.N * c.H)
        k, v = (self.buffer(f"{name}.{layer}", self.capacity * c.K * c.H) for name in "kv")
        half = T * c.H // 2
        dispatch = ops.rope(
            x=qk, qkv=qkv, cos=self.buffer("cos", half), sin=self.buffer("sin", half), q=q, k=k, v=v, T=T, N=c.N,
            K=c.K, H=c.H, stride=qk_stride, out_row0=self.offset, rotate=c.rotates[layer],
        )  # fmt: skip
        self.emit(dispatch, 6 * half * heads)
        return self.attend(layer, q, k, v)

    def attend(self, layer: int, q: str, k: str, v: str) -> str:
        """FlashAttention of T queries over the offset + T keys that exist by now."""
        c, T, S = self.config, self.T, self.offset + self.T
        z = self.rows("z", layer, c.N * c.H)
        whole = "lse" in self.keep and self.capacity == T
        lse = self.buffer(f"lse.{layer}" if whole else "lse", c.N * T)
        scratch_bytes = ops.attention_scratch(T=T, S=self.capacity, N=c.N, H=c.H)
        scratch = self.buffer("attention_part", scratch_bytes // 4) if scratch_bytes else ops.NONE
        dispatches = ops.attention(
            q=q, k=k, v=v, o=z, lse=lse, T=T, S=S, N=c.N, K=c.K, H=c.H, offset=self.offset, window=c.windows[layer],
            sinks=0, scale=c.scale, scratch=scratch, variant=self.choice.get(ops.attention_operation(T)),
            most_flops=self.submit_flops if T > 1 else None,
        )  # fmt: skip
        flops, parts = 4 * T * S * c.N * c.H, [each for each in dispatches if "group0" in each.params]
        if not parts:
            self.emit(dispatches, flops)  # one token's merge goes with what it merges
        for part in parts:  # images, if there are any, serve whoever attends last
            self.emit(part, flops // len(parts), dispatches[: -len(parts)])
        if "lse" in self.keep and not whole:  # lse is [N,T]: a chunk's rows go to N places of the kept buffer
            kept = self.buffer(f"lse.{layer}", c.N * self.capacity)
            for n in range(c.N):
                self.copy(lse, 4 * n * T, kept, 4 * (n * self.capacity + self.offset), 4 * T)
        return z


def stacked(at: str, together: str) -> list[str]:
    """Names of the weights of a layer (`at`) that STACKS puts together."""
    return [f"{at}{part}.weight" for part in STACKS[together]]


def bias_of(tensor: str) -> str:
    """The name of a weight's bias."""
    return tensor.removesuffix(".weight") + ".bias"


def forward(
    config: Config, placed: Mapping[str, Placed], *, T: int, offset: int, capacity: int, keep, logits: bool = False,
    temperature: float | None = None, choice: Mapping[str, str] | None = None, submit_flops: int | None = None,
) -> Forward:  # fmt: skip
    """Plan T tokens at positions offset .. offset+T-1. logits: also those of the last token, in `logits` [1,V].

    temperature: what webgpu/next_token.py prepares of those logits, nothing if None.
    submit_flops: work of one submit, SUBMIT_FLOPS if None; a single token is one submit whatever it takes.
    """
    plan = Forward(config, placed, T, offset, capacity, keep, choice, submit_flops)
    plan.embed()
    for layer in range(config.L):
        plan.layer(layer)
    if logits:
        x = plan.rows("resid", config.L, config.D)
        if T > 1:
            name, _, rest = x.partition("@")
            start = int(rest.partition("+")[0] or 0) + 4 * config.D * (T - 1)
            x = plan.buffer("last", config.D)
            plan.copy(name, start, x, 0, 4 * config.D)
        row = plan.logits(x, 1)
        if temperature is not None:
            next_token(plan, row, temperature)
    return plan


def prefill(
    config: Config, placed: Mapping[str, Placed], *, T: int, capacity: int, keep, logits: bool = False,
    temperature: float | None = None, chunk: int = CHUNK_TOKENS, choice: Mapping[str, str] | None = None,
    submit_flops: int | None = None,
) -> list[Forward]:  # fmt: skip
    """Plan a whole prompt as forwards of at most `chunk` tokens, fewer behind many; logits, temperature: its end."""
    cut = chunks(T, chunk, 4 * config.N * config.H, submit_flops or SUBMIT_FLOPS)
    return [
        forward(
            config, placed, T=count, offset=offset, capacity=capacity, keep=keep,
            logits=logits and offset + count == T, temperature=temperature, choice=choice, submit_flops=submit_flops,
        )
        for offset, count in cut
    ]  # fmt: skip


def merge_buffers(plans: list[Forward]) -> dict[str, int]:
    """The buffers of several plans that run one after the other: each name with its largest size in bytes."""
    merged: dict[str, int] = {}
    for plan in plans:
        for name, size in plan.buffers.items():
            merged[name] = max(merged.get(name, 0), size)
    return merged
