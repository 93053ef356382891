"""The forward pass as data: which buffers exist and which kernels run on them, in order. Nothing here touches a device.

    forward(...)    tokens offset .. offset+T-1 through all layers, against caches that hold the earlier ones
    prefill(...)    a prompt as a row of forwards of at most CHUNK_TOKENS, so that memory and submits stay small
`choice` names a variant (webgpu/variants.py) for an operation; what it does not name runs on the first.
`keep` says which intermediates outlive the pass, each layer its own buffer `name.layer` with a row per token; the
others share one scratch buffer `name`. Memory grows linearly in tokens. What is asked of a finished pass is in
webgpu/queries.py. `static/gpu/plan.js` mirrors this and a test holds the two lists equal.

A binding is a buffer's name, or `name@start+bytes` for a part of it (start a multiple of 256).
The residual stream entering layer l is `resid.l`; `resid.L` is what leaves the last one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from webgpu import ops
from webgpu.config import Config
from webgpu.layout import EMBED, HEAD, NORM, Placed, padded

# A multiple of 64, so that every chunk's rows start on a multiple of 256 bytes whatever their width.
CHUNK_TOKENS = 256
# Work of one submit: well under 100 ms on a slow GPU, about 100 ms on a CPU that stands in for one.
SUBMIT_FLOPS = 500_000_000

ZERO = "zero"  # what a Copy reads to clear a buffer

CACHE = frozenset({"k", "v"})
TRACE = frozenset({"q", "k", "v", "lse", "resid"})
RECORD = TRACE | {
    "attn_norm", "q_proj", "k_proj", "q_normed", "k_normed", "z", "attn_out",
    "resid_mid", "mlp_norm", "gate", "up", "act", "mlp_out",
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

    def emit(self, dispatches: ops.Dispatch | list[ops.Dispatch], flops: int) -> None:
        """Append dispatches that together do about `flops` operations."""
        step = self.steps[-1]
        if self.submit_flops is not None and step.dispatches and step.flops + flops > self.submit_flops:
            step = Step()
            self.steps.append(step)
        step.dispatches += dispatches if isinstance(dispatches, list) else [dispatches]
        step.flops += flops

    def norm(self, x: str, weight: str, out: str, rows: int, width: int) -> str:
        """RMSNorm of `rows` rows."""
        how = {"eps": self.config.eps, "variant": self.choice.get("norm")}
        dispatch = ops.rmsnorm(x=x, weight=weight, out=out, rows=rows, width=width, **how)
        self.emit(dispatch, 4 * rows * width)
        return out

    def product(self, x: str, tensor: str, out: str, T: int, out_row0: int = 0) -> str:
        """x [T,d_in] times a weight matrix, piece by piece, with its bias where there is one."""
        weight, bias = self.placed[tensor], self.placed.get(tensor.removesuffix(".weight") + ".bias")
        d_out, d_in = weight.shape
        for index, piece in enumerate(weight.pieces):
            dispatch = ops.matmul(
                x=x, weight=piece.buffer, bias=bias.pieces[index].buffer if bias else None, out=out, T=T, d_in=d_in,
                d_out=piece.rows, fmt=weight.fmt, scales=piece.scales, out_row0=out_row0, out_col0=piece.row0,
                out_stride=d_out, variant=self.choice.get(ops.product_operation(T)),
            )  # fmt: skip
            self.emit(dispatch, 2 * T * d_in * piece.rows)
        return out

    def head(self) -> str:
        """The tensor that turns the last residual stream into logits."""
        return EMBED if self.config.tied else HEAD

    def logits(self, x: str, rows: int) -> str:
        """Final norm and unembedding of `rows` rows of residual stream: logits [rows,V]."""
        normed = self.norm(x, NORM, self.buffer("final_norm", rows * self.config.D), rows, self.config.D)
        return self.product(normed, self.head(), self.buffer("logits", rows * self.config.V), rows)


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
        attn_out = self.product(z, at + "self_attn.o_proj.weight", self.rows("attn_out", layer, c.D), T)
        mid = self.rows("resid_mid", layer, c.D)
        self.emit(ops.add(a=x, b=attn_out, out=mid, count=T * c.D), T * c.D)
        norm = self.norm(mid, at + "post_attention_layernorm.weight", self.rows("mlp_norm", layer, c.D), T, c.D)
        gate = self.product(norm, at + "mlp.gate_proj.weight", self.rows("gate", layer, c.F), T)
        up = self.product(norm, at + "mlp.up_proj.weight", self.rows("up", layer, c.F), T)
        act = self.rows("act", layer, c.F)
        self.emit(ops.swiglu(gate=gate, up=up, out=act, count=T * c.F), 8 * T * c.F)
        mlp_out = self.product(act, at + "mlp.down_proj.weight", self.rows("mlp_out", layer, c.D), T)
        out = self.rows("resid", layer + 1, c.D)
        self.emit(ops.add(a=mid, b=mlp_out, out=out, count=T * c.D), T * c.D)

    def attention(self, layer: int, x: str) -> str:
        """Normed residual stream to z: projections, QK-norm, rotation, caches, attention."""
        c, T, at = self.config, self.T, f"model.layers.{layer}.self_attn."
        q = self.product(x, at + "q_proj.weight", self.rows("q_proj", layer, c.N * c.H), T)
        k = self.product(x, at + "k_proj.weight", self.rows("k_proj", layer, c.K * c.H), T)
        v_cache = self.buffer(f"v.{layer}", self.capacity * c.K * c.H)
        k_cache = self.buffer(f"k.{layer}", self.capacity * c.K * c.H)
        self.product(x, at + "v_proj.weight", v_cache, T, out_row0=self.offset)
        if c.qk_norm:
            q = self.norm(q, at + "q_norm.weight", self.rows("q_normed", layer, c.N * c.H), T * c.N, c.H)
            k = self.norm(k, at + "k_norm.weight", self.rows("k_normed", layer, c.K * c.H), T * c.K, c.H)
        rotated = self.rows("q", layer, c.N * c.H)
        self.rotate(layer, q, rotated, c.N, 0)
        self.rotate(layer, k, k_cache, c.K, self.offset)
        return self.attend(layer, rotated, k_cache, v_cache)

    def rotate(self, layer: int, x: str, out: str, heads: int, out_row0: int) -> None:
        """RoPE with this forward's tables; layers without RoPE copy."""
        c, half = self.config, self.T * self.config.H // 2
        dispatch = ops.rope(
            x=x, cos=self.buffer("cos", half), sin=self.buffer("sin", half), out=out, T=self.T, heads=heads, H=c.H,
            out_row0=out_row0, rotate=c.rotates[layer],
        )  # fmt: skip
        self.emit(dispatch, 6 * half * heads)

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
        )  # fmt: skip
        self.emit(dispatches, 4 * T * S * c.N * c.H)
        if "lse" in self.keep and not whole:  # lse is [N,T]: a chunk's rows go to N places of the kept buffer
            kept = self.buffer(f"lse.{layer}", c.N * self.capacity)
            for n in range(c.N):
                self.copy(lse, 4 * n * T, kept, 4 * (n * self.capacity + self.offset), 4 * T)
        return z


def forward(
    config: Config, placed: Mapping[str, Placed], *, T: int, offset: int, capacity: int, keep, logits: bool = False,
    choice: Mapping[str, str] | None = None, submit_flops: int | None = None,
) -> Forward:  # fmt: skip
    """Plan T tokens at positions offset .. offset+T-1. logits: also those of the last token, in `logits` [1,V].

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
        plan.logits(x, 1)
    return plan


def prefill(
    config: Config, placed: Mapping[str, Placed], *, T: int, capacity: int, keep, logits: bool = False,
    chunk: int = CHUNK_TOKENS, choice: Mapping[str, str] | None = None, submit_flops: int | None = None,
) -> list[Forward]:  # fmt: skip
    """Plan a whole prompt as forwards of at most `chunk` tokens; logits: of the last token."""
    return [
        forward(
            config, placed, T=min(chunk, T - offset), offset=offset, capacity=capacity, keep=keep,
            logits=logits and offset + chunk >= T, choice=choice, submit_flops=submit_flops,
        )
        for offset in range(0, T, chunk)
    ]  # fmt: skip


def merge_buffers(plans: list[Forward]) -> dict[str, int]:
    """The buffers of several plans that run one after the other: each name with its largest size in bytes."""
    merged: dict[str, int] = {}
    for plan in plans:
        for name, size in plan.buffers.items():
            merged[name] = max(merged.get(name, 0), size)
    return merged
