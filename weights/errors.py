"""What can be wrong with a checkpoint: one error class per rule, each with the `code` that the page's reader gives too.

A code is kebab-case and stable; `static/lib/safetensors.js` throws `SafetensorsError` with the same code for the same
bytes. Every message says what was given, what is allowed and what to do, on one line, with names quoted as ASCII.
"""

import json


class CheckpointError(ValueError):
    """A folder or file that is not a checkpoint this project reads; `code` names the rule that was broken."""

    code = "checkpoint"

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


def quoted(value: object, limit: int = 80) -> str:
    """A value from a file as short printable ASCII, safe in a terminal and in a log."""
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def rule(name: str, code: str, doc: str) -> type[CheckpointError]:
    """Make the error class of one rule. doc: the rule, in a sentence."""
    return type(name, (CheckpointError,), {"code": code, "__doc__": doc, "__module__": __name__})


# The folder
FolderMissing = rule("FolderMissing", "folder-missing", "A checkpoint is a folder.")
FileMissing = rule("FileMissing", "file-missing", "The folder holds config.json and weights.")
NotAFile = rule("NotAFile", "not-a-file", "Each file is a regular, readable file.")
TwoLayouts = rule("TwoLayouts", "two-layouts", "Either model.safetensors or an index with shards, not both.")
NoTensors = rule("NoTensors", "no-tensors", "A checkpoint holds at least one tensor.")
WeightDtype = rule("WeightDtype", "weight-dtype", "Weights are F32, F16 or BF16, or blocks.")
BlockKind = rule("BlockKind", "block-kind", "Blocks are q4_1 or q8_0.")
BlockTwice = rule("BlockTwice", "block-twice", "A matrix is stored in one way.")
BlockPair = rule("BlockPair", "block-pair", "A block matrix is quants and scales.")
BlockShape = rule("BlockShape", "block-shape", "Quants and scales have the types and sizes of one matrix.")
FileTruncated = rule("FileTruncated", "file-truncated", "A file keeps its bytes while it is read.")

# config.json
ConfigTooLarge = rule("ConfigTooLarge", "config-too-large", "config.json is small.")
ConfigNotUtf8 = rule("ConfigNotUtf8", "config-not-utf8", "config.json is UTF-8.")
ConfigTooDeep = rule("ConfigTooDeep", "config-too-deep", "config.json nests a few levels at most.")
ConfigNotJson = rule("ConfigNotJson", "config-not-json", "config.json is one JSON object.")
ConfigDuplicateKey = rule("ConfigDuplicateKey", "config-duplicate-key", "A key stands once in config.json.")

# A safetensors file: the header as bytes
FileTooShort = rule("FileTooShort", "file-too-short", "A file begins with the eight bytes of its header length.")
HeaderTooLarge = rule("HeaderTooLarge", "header-too-large", "A header is 8 MiB at most.")
HeaderOutsideFile = rule("HeaderOutsideFile", "header-outside-file", "The header lies within the file.")
HeaderStart = rule("HeaderStart", "header-start", "The header's first byte is an opening brace.")
HeaderNotUtf8 = rule("HeaderNotUtf8", "header-not-utf8", "The header is UTF-8.")
HeaderTooDeep = rule("HeaderTooDeep", "header-too-deep", "The header nests a few levels at most.")
HeaderNotJson = rule("HeaderNotJson", "header-not-json", "The header is one JSON object.")
HeaderDuplicateKey = rule("HeaderDuplicateKey", "header-duplicate-key", "A key stands once in the header.")

# A safetensors file: what the header says
MetadataNotStrings = rule("MetadataNotStrings", "metadata-not-strings", "__metadata__ maps strings to strings.")
TooManyTensors = rule("TooManyTensors", "too-many-tensors", "A file holds 10,000 tensors at most.")
NamePath = rule("NamePath", "name-path", "A tensor's name is no path.")
NameCharacters = rule("NameCharacters", "name-characters", "A tensor's name is made of letters, digits, '_', '.', '-'.")
NameTooLong = rule("NameTooLong", "name-too-long", "A tensor's name has 200 characters at most.")
NameReserved = rule("NameReserved", "name-reserved", "A tensor's name is no JavaScript prototype key.")
EntryFields = rule("EntryFields", "entry-fields", "An entry has dtype, shape and data_offsets, nothing else.")
UnknownDtype = rule("UnknownDtype", "unknown-dtype", "The dtype is one of the format's.")
ShapeNotIntegers = rule("ShapeNotIntegers", "shape-not-integers", "A shape is a list of integers.")
ShapeNegative = rule("ShapeNegative", "shape-negative", "A size is zero or more.")
ShapeRank = rule("ShapeRank", "shape-rank", "A shape has eight sizes at most.")
ShapeOverflow = rule("ShapeOverflow", "shape-overflow", "A tensor has fewer than 2^53 bytes.")
OffsetsNotIntegers = rule("OffsetsNotIntegers", "offsets-not-integers", "data_offsets is two integers, zero or more.")
OffsetsReversed = rule("OffsetsReversed", "offsets-reversed", "A tensor begins before it ends.")
OffsetsOutsideFile = rule("OffsetsOutsideFile", "offsets-outside-file", "A tensor's bytes lie within the file.")
SizeMismatch = rule("SizeMismatch", "size-mismatch", "A tensor has as many bytes as its shape and dtype need.")
Overlap = rule("Overlap", "overlap", "No two tensors share bytes.")
Hole = rule("Hole", "hole", "No byte between tensors belongs to none.")
TrailingBytes = rule("TrailingBytes", "trailing-bytes", "The file ends with its last tensor.")

# model.safetensors.index.json
IndexTooLarge = rule("IndexTooLarge", "index-too-large", "An index is 8 MiB at most.")
IndexNotUtf8 = rule("IndexNotUtf8", "index-not-utf8", "An index is UTF-8.")
IndexTooDeep = rule("IndexTooDeep", "index-too-deep", "An index nests a few levels at most.")
IndexNotJson = rule("IndexNotJson", "index-not-json", "An index is one JSON object.")
IndexDuplicateKey = rule("IndexDuplicateKey", "index-duplicate-key", "A key stands once in the index.")
IndexFields = rule("IndexFields", "index-fields", "An index has a weight_map of strings.")
IndexShardPath = rule("IndexShardPath", "index-shard-path", "A shard is a plain .safetensors name in the folder.")
IndexShardMissing = rule("IndexShardMissing", "index-shard-missing", "Every shard that the index names is there.")
TensorInTwoShards = rule("TensorInTwoShards", "tensor-in-two-shards", "A tensor stands in one shard.")
IndexWrongShard = rule("IndexWrongShard", "index-wrong-shard", "A tensor stands in the shard that the index names.")
IndexTensorMissing = rule("IndexTensorMissing", "index-tensor-missing", "Every tensor of the index is in a shard.")
IndexTensorUnlisted = rule("IndexTensorUnlisted", "index-tensor-unlisted", "Every tensor of a shard is in the index.")
IndexTotalSize = rule("IndexTotalSize", "index-total-size", "total_size is the bytes of all tensors.")

BY_CODE = {kind.code: kind for kind in CheckpointError.__subclasses__()}
