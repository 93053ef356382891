"""A checkpoint small enough to serve in every test, and a server that runs in a thread."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import uvicorn
from safetensors.numpy import save_file

V, D, F, L, N, K, H = 97, 16, 24, 2, 4, 2, 8

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": L,
    "num_attention_heads": N,
    "num_key_value_heads": K,
    "head_dim": H,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
}


def write_model(folder: Path, **changes: object) -> Path:
    """A llama with random weights; `changes` go into config.json, and model_type qwen3 brings its QK-norm weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    rng = np.random.default_rng(7)
    shapes = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    for layer in range(L):
        at = f"model.layers.{layer}."
        shapes |= {at + f"{name}.weight": (D,) for name in ("input_layernorm", "post_attention_layernorm")}
        shapes |= {at + "self_attn.q_proj.weight": (N * H, D), at + "self_attn.o_proj.weight": (D, N * H)}
        shapes |= {at + f"self_attn.{name}_proj.weight": (K * H, D) for name in "kv"}
        shapes |= {at + f"mlp.{name}_proj.weight": (F, D) for name in ("gate", "up")}
        shapes |= {at + "mlp.down_proj.weight": (D, F)}
        if changes.get("model_type") == "qwen3":
            shapes |= {at + f"self_attn.{name}_norm.weight": (H,) for name in "qk"}
    weights = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


class Live:
    """A running server: its port, its application, and requests that nothing rewrites on the way."""

    def __init__(self, app, port: int):
        self.app, self.port = app, port

    def ask(
        self, method: str, path: str, *, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> "Answer":
        """Send one request exactly as given; `path` goes out as it is, dots and percent signs included."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return Answer(response.status, dict((k.lower(), v) for k, v in response.getheaders()), response.read())
        finally:
            connection.close()

    def post(self, path: str, value: object) -> "Answer":
        """POST a value as JSON."""
        return self.ask("POST", path, body=json.dumps(value).encode(), headers={"Content-Type": "application/json"})


class Answer:
    """Status, headers (lower-case names) and body of one answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes):
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> dict:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error's code; fails the test when the body is no error envelope."""
        assert set(self.json()) == {"error"} and set(self.json()["error"]) == {"code", "message"}, self.body
        return self.json()["error"]["code"]


@contextlib.contextmanager
def live(app) -> Iterator[Live]:
    """Serve an application on a free port until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, server_header=False, ws="none"))
    ready = threading.Event()
    startup = server.startup

    async def started(sockets=None) -> None:
        await startup(sockets=sockets)
        ready.set()

    server.startup = started
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        assert ready.wait(30), "the server did not start"
        yield Live(app, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
