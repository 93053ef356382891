"""`playground trace`: run one prompt and print the likeliest next tokens and the best guess through depth, or write its
patterns, residuals, logits and lens (FILE_NAMES of trace_names.py) to a safetensors file."""

import argparse
import json
import os
import tempfile
from pathlib import Path

from server.commands import CommandError, tell
from server.commands.prompts import Prompt, add_prompt_options, check_ids, read_prompt
from server.trace_names import FILE_NAMES, total_bytes

# A trace holds [L, N, T, T] patterns; beyond this a file helps nobody and memory runs out first.
MAX_FILE_BYTES = 4 * 1024**3


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("trace", help="run a prompt, print or write what it gives", description=__doc__)
    command.add_argument("model", metavar="MODEL", help="a catalogue id or a folder")
    add_prompt_options(command, required=True)
    command.add_argument("--backend", choices=("webgpu", "oracle"), default="webgpu", help="who computes (webgpu)")
    command.add_argument("--out", type=Path, metavar="FILE.safetensors", help="write a file instead of printing")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Raises CommandError and the errors of catalogue, config, device and oracle, each with one sentence."""
    from webgpu.config import parse_config
    from weights.catalogue import open_model

    checkpoint = open_model(args.model)
    config = parse_config(checkpoint.config)
    prompt = read_prompt(args, checkpoint.folder)
    check_ids(prompt.ids, config.V, config.max_tokens)
    if args.out is not None:
        sizes = {key: getattr(config, key) for key in "LNKDHFV"}
        check_out(args.out, sizes, len(prompt.ids))
    tell(f"loading {args.model}")
    backend, adapter = open_backend(args.backend, checkpoint.folder)
    tell(f"running {len(prompt.ids)} tokens through {config.L} layers and the lens on {adapter}")
    if args.out is None:
        print_summary(backend, adapter, prompt)
        return 0
    tensors = backend.trace(prompt.ids, FILE_NAMES)
    metadata = describe(args, prompt, checkpoint.hash, adapter)
    write_file(args.out, tensors, metadata)
    print(f"{args.out}: {len(tensors)} tensors of {len(prompt.ids)} tokens, {args.backend} on {adapter}.")
    return 0


def open_backend(name: str, folder: Path):
    """The backend with the model loaded, and its adapter in words. Raises CommandError when PyTorch is missing."""
    if name == "webgpu":
        from server.webgpu_run import Kernels

        kernels = Kernels(folder)
        return kernels, kernels.device.words
    need_oracle()
    from server.oracle_run import Oracle

    oracle = Oracle(folder)
    return oracle, f"CPU, {str(oracle.dtype).removeprefix('torch.')}"


def need_oracle() -> None:
    """Raise CommandError with the way out when torch cannot be imported."""
    from server.oracle_state import oracle_state
    from server.settings import load_settings

    state = oracle_state(load_settings().oracle_state)
    if state["state"] != "ready":
        raise CommandError(state["detail"])


def check_out(path: Path, sizes: dict[str, int], tokens: int) -> None:
    """Refuse a file that cannot be written, before anything is computed. Raises CommandError."""
    needed = total_bytes(FILE_NAMES, sizes, tokens=tokens, layers=sizes["L"], rows=tokens)
    if needed > MAX_FILE_BYTES:
        raise CommandError(f"The trace would have {needed / 1e9:.1f} GB, the limit is 4.3 GB; shorten the prompt.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; give --out the name of a file.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is a device or a pipe; give --out the name of a file.")
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise CommandError(f"{path} cannot be written; choose another place with --out.")


def describe(args: argparse.Namespace, prompt: Prompt, model_hash: str, adapter: str) -> dict[str, str]:
    """The file's metadata: strings, as the format wants."""
    from server.status import versions

    return {
        "prompt": prompt.text,
        "model": args.model,
        "model_hash": model_hash,
        "backend": args.backend,
        "adapter": adapter,
        "versions": json.dumps(versions()),
    }


def umask() -> int:
    """The permissions that this process takes from new files; only setting it tells."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def write_file(path: Path, tensors: dict, metadata: dict[str, str]) -> None:
    """Write the file whole or not at all. Raises CommandError."""
    from safetensors.numpy import save_file

    fresh, path = None, path.resolve()  # a link stays a link: what it points at is written
    try:
        handle, fresh = tempfile.mkstemp(prefix=path.name + ".", suffix=".tmp", dir=path.parent)
        os.close(handle)
        save_file(tensors, fresh, metadata=metadata)
        os.chmod(fresh, 0o666 & ~umask())
        os.replace(fresh, path)
    except Exception as error:  # the library reports a full disk as an error class of its own
        raise CommandError(f"{path} could not be written: {getattr(error, 'strerror', None) or error}.") from None
    finally:
        if fresh is not None and os.path.exists(fresh):
            os.unlink(fresh)


def print_summary(backend, adapter: str, prompt: Prompt) -> None:
    """The likeliest next tokens, and how the best guess changes through depth at the last position."""
    import numpy as np

    best, logprobs = backend.lens_column(prompt.ids, len(prompt.ids) - 1)
    shares, depths = np.exp(logprobs), len(best) - 1
    print(f"{len(prompt.ids)} tokens: {' '.join(prompt.piece(token_id) for token_id in prompt.ids[:40])}")
    print(f"computed by {adapter}")
    print("next token:")
    for token_id, share in zip(best[-1, :5], shares[-1, :5], strict=True):
        print(f"  {share:.3f}  {prompt.piece(int(token_id))}")
    print("best guess through depth:")
    for depth in sorted({*range(0, depths, max(1, depths // 6)), depths}):
        print(f"  {depth:>3} layers  {shares[depth, 0]:.3f}  {prompt.piece(int(best[depth, 0]))}")
