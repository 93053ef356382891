"""The classic mistakes, planted one at a time in a copy of the oracle.

A mistake is an edit: these words of a file, and the wrong words in their place. `plant` copies `python_ref`, makes the
edit and imports the copy, so a mistake can never drift away from the code that it spoils. `caught_by` names a test of
tests/oracle/test_modules.py that must fail.
"""

import importlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import python_ref


@dataclass(frozen=True)
class Mistake:
    """One wrong edit. edits: (right words, wrong words), each found in the file and replaced wherever it stands."""

    name: str
    file: str
    edits: tuple[tuple[str, str], ...]
    caught_by: str


MISTAKES = [
    Mistake(
        "missing_scale",
        "attention.py",
        ((" / math.sqrt(H)", ""),),
        "test_attention_scale_is_one_over_sqrt_head_dim",
    ),
    Mistake(
        "scale_by_model_width",
        "attention.py",
        ((" / math.sqrt(H)", " / math.sqrt(N * H)"),),
        "test_naive_attention_matches_pytorch",
    ),
    Mistake(
        "heads_repeated_interleaved",
        "attention.py",
        (("x[:, :, None].expand(B, K, groups, S, H).reshape(B, K * groups, S, H)", "x.repeat(1, groups, 1, 1)"),),
        "test_repeat_kv_groups_correctly",
    ),
    Mistake(
        "neighbours_rotated",
        "rope.py",
        (
            ("x.chunk(2, dim=-1)", "(x[..., 0::2], x[..., 1::2])"),
            ("torch.cat(", "torch.stack("),
            ("first * sin], dim=-1)", "first * sin], dim=-1).flatten(-2)"),
        ),
        "test_rope_makes_attention_relative",
    ),
    Mistake(
        "pairs_and_tables_disagree",
        "rope.py",
        (
            ("x.chunk(2, dim=-1)", "(x, torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2))"),
            (
                "torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)",
                "first * torch.cat([cos, cos], dim=-1) + second * torch.cat([sin, sin], dim=-1)",
            ),
        ),
        "test_rope_preserves_norm",
    ),
    Mistake(
        "rotated_clockwise",
        "rope.py",
        (("first * cos - second * sin, second * cos + first", "first * cos + second * sin, second * cos - first"),),
        "test_rope_makes_attention_relative",
    ),
    Mistake(
        "one_sign_wrong",
        "rope.py",
        (("first * cos - second", "first * cos + second"),),
        "test_rope_preserves_norm",
    ),
    Mistake(
        "positions_start_at_one",
        "rope.py",
        (("torch.arange(offset, offset + T,", "torch.arange(offset + 1, offset + T + 1,"),),
        "test_rope_is_identity_at_position_zero",
    ),
    Mistake(
        "view_without_transpose",
        "attention.py",
        (
            (".view(B, T, self.N, self.H).transpose(1, 2)", ".view(B, self.N, T, self.H)"),
            (".view(B, T, self.K, self.H).transpose(1, 2)", ".view(B, self.K, T, self.H)"),
        ),
        "test_attention_is_causal",
    ),
    Mistake(
        "heads_merged_without_transpose",
        "attention.py",
        (("z).transpose(1, 2).reshape(", "z).reshape("),),
        "test_attention_is_causal",
    ),
    Mistake(
        "mask_after_softmax",
        "attention.py",
        (("    scores = scores.masked_fill(hidden, -math.inf)\n", ""),),
        "test_attention_is_causal",
    ),
    Mistake(
        "mask_off_by_one",
        "attention.py",
        (("visible &= key <= query", "visible &= key <= query + 1"),),
        "test_attention_is_causal",
    ),
    Mistake(
        "values_rotated_too",
        "attention.py",
        (
            (
                "q, k = self.rope(q, offset), self.rope(k, offset)",
                "q, k, v = self.rope(q, offset), self.rope(k, offset), self.rope(v, offset)",
            ),
        ),
        "test_rope_makes_attention_relative",
    ),
]


def write_copy(folder: Path, mistake: Mistake | None) -> str:
    """Write a copy of the oracle, spoiled by `mistake`, into `folder`; returns the package's name."""
    name = f"oracle_with_{mistake.name if mistake else 'no_mistake'}"
    shutil.copytree(Path(python_ref.__file__).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for right, wrong in mistake.edits if mistake else ():
        path = folder / name / mistake.file
        text = path.read_text()
        if right not in text:
            raise LookupError(f"{mistake.file} no longer has {right!r}: write the mistake {mistake.name} anew.")
        path.write_text(text.replace(right, wrong))
    return name


def plant(folder: Path, mistake: Mistake | None) -> ModuleType:
    """Import a copy of the oracle with one mistake in it, or with none."""
    name = write_copy(folder, mistake)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
        for loaded in [module for module in sys.modules if module.split(".")[0] == name]:
            del sys.modules[loaded]
