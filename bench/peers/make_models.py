"""The ONNX models that stand beside the kernels: one attention operation, and SmolLM2 whole.

    attention.onnx          GroupQueryAttention, prefill: q, k, v [1,T,heads*H] -> o
    decode.onnx             the same for one token against a past of P keys
    smollm2-q4.onnx, smollm2-f32.onnx   30 layers, weights of the pulled checkpoint; ids, caches -> logits, caches
q4 is MatMulNBits, blocks of 32, symmetric, rounded to nearest: the peer's own quantisation, so its logits are not the
oracle's. Run by `python -m bench --install-peers`, which installs the package `onnx` into a folder of its own.
"""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))

from onnx import TensorProto, helper, numpy_helper, save  # noqa: E402

MS, F32 = "com.microsoft", TensorProto.FLOAT
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid(MS, 1)]
BLOCK = 32


def value(name: str, *shape: int | str, kind: int = F32):
    """A typed input or output."""
    return helper.make_tensor_value_info(name, kind, list(shape))


def write(path: Path, nodes: list, inputs: list, outputs: list, weights: list) -> None:
    """One graph into one file."""
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, weights)
    save(helper.make_model(graph, opset_imports=OPSETS, ir_version=10), path)


def attention(path: Path, N: int, K: int, H: int, past: bool) -> None:
    """GroupQueryAttention alone; past: with a cache [1,K,P,H]."""
    cache = ["past_key", "past_value"] if past else ["", ""]
    node = helper.make_node(
        "GroupQueryAttention", ["q", "k", "v", *cache, "seqlens", "total"], ["o", "present_key", "present_value"],
        domain=MS, num_heads=N, kv_num_heads=K, scale=H**-0.5,
    )  # fmt: skip
    inputs = [value("q", 1, "T", N * H), value("k", 1, "T", K * H), value("v", 1, "T", K * H)]
    inputs += [value(name, 1, K, "P", H) for name in cache if name]
    inputs += [value("seqlens", 1, kind=TensorProto.INT32), value("total", kind=TensorProto.INT32)]
    outputs = [value("o", 1, "T", N * H), *(value(f"present_{name}", 1, K, "S", H) for name in ("key", "value"))]
    write(path, [node], inputs, outputs, [])


class SmolLM2:
    """The graph of a Llama with grouped heads and rotary positions, built node by node."""

    def __init__(self, checkpoint, q4: bool) -> None:
        self.checkpoint, self.c, self.q4 = checkpoint, checkpoint.config, q4
        self.nodes: list = []
        self.weights: list = []

    def keep(self, name: str, values: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def read(self, name: str) -> np.ndarray:
        found = self.checkpoint.read(name)
        return np.asarray(found.values() if hasattr(found, "values") else found, np.float32)

    def node(self, op: str, inputs: list[str], out: str, domain: str = "", **attributes) -> str:
        self.nodes.append(helper.make_node(op, inputs, [out], domain=domain, **attributes))
        return out

    def norm(self, x: str, tensor: str, out: str) -> str:
        scale = self.keep(tensor, self.read(tensor))
        epsilon = self.c["rms_norm_eps"]
        return self.node("SimplifiedLayerNormalization", [x, scale], out, axis=-1, epsilon=epsilon, stash_type=1)

    def product(self, x: str, tensor: str, out: str) -> str:
        weight = self.read(tensor)
        if not self.q4:
            return self.node("MatMul", [x, self.keep(tensor + ".t", weight.T)], out)
        rows, width = weight.shape
        blocks = weight.reshape(rows, width // BLOCK, BLOCK)
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)
        scales = np.where(largest == 0, 1, largest / -8).astype(np.float32)
        q = np.clip(np.rint(blocks / scales) + 8, 0, 15).astype(np.uint8)
        packed = self.keep(tensor + ".q", q[..., 0::2] | q[..., 1::2] << 4)
        names = [x, packed, self.keep(tensor + ".s", scales[..., 0])]
        return self.node("MatMulNBits", names, out, domain=MS, K=width, N=rows, bits=4, block_size=BLOCK)

    def layer(self, x: str, index: int) -> str:
        at, p = f"model.layers.{index}.", f"l{index}."
        heads, kv = self.c["num_attention_heads"], self.c["num_key_value_heads"]
        h = self.norm(x, at + "input_layernorm.weight", p + "norm")
        q, k, v = (self.product(h, f"{at}self_attn.{name}_proj.weight", p + name) for name in "qkv")
        inputs = [q, k, v, f"past.{index}.key", f"past.{index}.value", "seqlens", "total", "cos", "sin"]
        outputs = [p + "z", f"present.{index}.key", f"present.{index}.value"]
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                inputs,
                outputs,
                domain=MS,
                num_heads=heads,
                kv_num_heads=kv,
                do_rotary=1,
                rotary_interleaved=0,
            )
        )
        mid = self.node("Add", [x, self.product(p + "z", at + "self_attn.o_proj.weight", p + "o")], p + "mid")
        h = self.norm(mid, at + "post_attention_layernorm.weight", p + "norm2")
        gate, up = (self.product(h, f"{at}mlp.{name}_proj.weight", p + name) for name in ("gate", "up"))
        act = self.node("Mul", [gate, self.node("Sigmoid", [gate], p + "sigmoid")], p + "silu")
        act = self.node("Mul", [act, up], p + "act")
        return self.node("Add", [mid, self.product(act, at + "mlp.down_proj.weight", p + "down")], p + "out")

    def save(self, path: Path, positions: int = 2048) -> None:
        """Build and write the whole model."""
        c, embed = self.c, "model.embed_tokens.weight"
        heads, kv, H = c["num_attention_heads"], c["num_key_value_heads"], c["hidden_size"] // c["num_attention_heads"]
        angles = np.arange(positions)[:, None] / c["rope_theta"] ** (np.arange(0, H, 2) / H)
        self.keep("cos", np.cos(angles).astype(np.float32))
        self.keep("sin", np.sin(angles).astype(np.float32))
        table = self.read(embed)
        x = self.node("Gather", [self.keep(embed, table), "ids"], "x")
        for index in range(c["num_hidden_layers"]):
            x = self.layer(x, index)
        last = self.keep("last", np.array([-1], np.int64))
        x = self.node("Gather", [self.norm(x, "model.norm.weight", "final"), last], "row", axis=1)
        self.product(x, embed, "logits")
        layers = range(c["num_hidden_layers"])
        ends = [(i, name) for i in layers for name in ("key", "value")]
        inputs = [value("ids", 1, "T", kind=TensorProto.INT64), value("seqlens", 1, kind=TensorProto.INT32)]
        inputs += [value("total", kind=TensorProto.INT32)]
        inputs += [value(f"past.{i}.{name}", 1, kv, "P", H) for i, name in ends]
        outputs = [value("logits", 1, 1, c["vocab_size"])]
        outputs += [value(f"present.{i}.{name}", 1, kv, "S", H) for i, name in ends]
        assert heads * H == c["hidden_size"]
        write(path, self.nodes, inputs, outputs, self.weights)


def main() -> None:
    """Write every model that is not there yet."""
    from weights.catalogue import resolve
    from weights.checkpoint import open_checkpoint

    folder = HERE / "models"
    folder.mkdir(exist_ok=True)
    for name, past in (("attention", False), ("decode", True)):
        attention(folder / f"{name}.onnx", 9, 3, 64, past)
    for name in ("smollm2-q4", "smollm2-f32"):
        path = folder / f"{name}.onnx"
        if not path.exists():
            part = path.with_suffix(".part")
            SmolLM2(open_checkpoint(resolve("smollm2-135m")), name.endswith("q4")).save(part)
            part.rename(path)


if __name__ == "__main__":
    main()
