"""model.safetensors.index.json, which says in which shard of a folder each tensor stands.

    {"metadata": {"total_size": bytes}, "weight_map": {"tensor name": "model-00001-of-00002.safetensors", ...}}

A shard's name comes from a file, so it is checked to be a plain name before anything is opened. The page reads no
index: the server tells it which files a model has.
"""

import re
from dataclasses import dataclass

from weights import errors
from weights.errors import quoted
from weights.safetensors_header import MAX_TENSORS, Header
from weights.strict_json import Number, parse_object

MAX_INDEX_BYTES = 8 * 1024 * 1024
_SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}\.safetensors")


@dataclass(frozen=True)
class ShardIndex:
    """weight_map, and total_size in bytes where the index states it."""

    weight_map: dict[str, str]
    total_size: str | None

    @property
    def shards(self) -> list[str]:
        """Shard names in order, each once."""
        return sorted(set(self.weight_map.values()))


def parse_index(data: bytes) -> ShardIndex:
    """Check and parse an index on its own. Raises the index-* errors of weights/errors.py."""
    if len(data) > MAX_INDEX_BYTES:
        raise errors.IndexTooLarge(f"The shard index has more than {MAX_INDEX_BYTES} bytes. Fetch it again.")
    value = parse_object(data, "index", max_depth=8, as_written=True)
    weight_map, metadata = value.get("weight_map"), value.get("metadata", {})
    if (
        not isinstance(weight_map, dict)
        or not all(isinstance(shard, str) for shard in weight_map.values())
        or not isinstance(metadata, dict)
    ):
        raise errors.IndexFields("The shard index must have a weight_map from tensor names to shard names.")
    if len(weight_map) > MAX_TENSORS:
        raise errors.TooManyTensors(f"The index names {len(weight_map)} tensors; at most {MAX_TENSORS} are allowed.")
    for shard in weight_map.values():
        if not _SHARD.fullmatch(shard) or ".." in shard:
            raise errors.IndexShardPath(
                f"The index points at {quoted(shard)}; a shard is a plain name in the folder that ends in .safetensors."
            )
    total = metadata.get("total_size")
    return ShardIndex(weight_map, None if total is None else total.text if isinstance(total, Number) else "")


def check_index(index: ShardIndex, headers: dict[str, Header]) -> None:
    """Check the index against its shards' headers, one for every name in index.shards."""
    home: dict[str, str] = {}
    for shard in index.shards:
        for name in headers[shard].tensors:
            if name in home:
                raise errors.TensorInTwoShards(f"Tensor {quoted(name)} stands in {home[name]} and in {shard}.")
            home[name] = shard
    for name, shard in index.weight_map.items():
        if name not in home:
            raise errors.IndexTensorMissing(f"The index names {quoted(name)} in {shard}, but no shard holds it.")
        if home[name] != shard:
            raise errors.IndexWrongShard(f"The index names {quoted(name)} in {shard}, but it stands in {home[name]}.")
    for name in home:
        if name not in index.weight_map:
            raise errors.IndexTensorUnlisted(f"{home[name]} holds {quoted(name)}, which the index does not name.")
    total = sum(tensor.end - tensor.begin for header in headers.values() for tensor in header.tensors.values())
    if index.total_size is not None and index.total_size != str(total):
        raise errors.IndexTotalSize(
            f"The index says total_size {quoted(index.total_size, 30)}; its tensors have {total} bytes. Fetch it again."
        )
