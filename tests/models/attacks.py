"""Files that lie, one per rule of weights/errors.py, each with a control beside it that is accepted.

`FILES` are single safetensors files, `FOLDERS` checkpoint folders with one: both readers, Python and JavaScript, must
give the code named here. `PYTHON_FOLDERS` break what the server alone reads, config and index: the page asks it which
files a model has. An attack differs from its control in one thing.
"""

import json
import math
from dataclasses import dataclass

ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
EMPTY = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}


@dataclass(frozen=True)
class Attack:
    """One file, or one folder: what it is called, the code both readers give (None: accepted), the bytes."""

    name: str
    code: str | None
    files: dict[str, bytes]

    @property
    def data(self) -> bytes:
        """The bytes of a single file."""
        return self.files["model.safetensors"]


def pack(header: object, data: bytes = bytes(24), length: int | None = None) -> bytes:
    """A safetensors file. header: JSON text, raw bytes, or a value to write as JSON; length: what the file claims."""
    text = header if isinstance(header, bytes) else header if isinstance(header, str) else json.dumps(header)
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw + data


def one(**changes: object) -> dict:
    """A header with one good tensor, changed."""
    return {"w": {**ENTRY, **changes}}


def two(first: list[int], second: list[int]) -> dict:
    """A header with two tensors of U8 at the given offsets."""
    return {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, (begin, end) in {"a": first, "b": second}.items()
    }


def named(name: str) -> dict:
    """A header with one good tensor of this name."""
    return {name: ENTRY}


def raw(shape: str = "[2, 3]", offsets: str = "[0, 24]") -> str:
    """A header whose numbers are written just so."""
    return f'{{"w": {{"dtype": "F32", "shape": {shape}, "data_offsets": {offsets}}}}}'


_FILES: list[tuple[str, str | None, bytes]] = [
    ("control", None, pack(one())),
    ("control padded with blanks", None, pack(json.dumps(one()) + "   \n\t")),
    ("control metadata", None, pack({"__metadata__": {"format": "pt"}, **one()})),
    ("control no tensors", None, pack("{}", b"")),
    ("control empty tensor", None, pack(two([0, 0], [0, 24]))),
    ("control scalar", None, pack(one(shape=[], data_offsets=[0, 4]), bytes(4))),
    ("control order of bytes differs", None, pack(two([12, 24], [0, 12]))),
    ("control longest name", None, pack(named("n" * 200))),
    ("control escaped name", None, pack('{"\\u0077": ' + json.dumps(ENTRY) + "}")),
    ("control deep but flat enough", "entry-fields", pack('{"w": [[[[[[[]]]]]]]}')),
    ("empty file", "file-too-short", b""),
    ("seven bytes", "file-too-short", bytes(7)),
    ("length beyond the limit", "header-too-large", pack(one(), length=8 * 1024 * 1024 + 1)),
    ("length of all ones", "header-too-large", pack(one(), length=2**64 - 1)),
    ("length beyond the file", "header-outside-file", pack(one(), b"", length=len(json.dumps(one())) + 1)),
    ("empty header", "header-start", pack("", b"")),
    ("blank before the header", "header-start", pack(" " + json.dumps(one()))),
    ("byte order mark", "header-start", pack("\ufeff" + json.dumps(one()))),
    ("header is a list", "header-start", pack("[]", b"")),
    ("bad UTF-8", "header-not-utf8", pack(b'{"\xff": 1}')),
    ("surrogate in UTF-8", "header-not-utf8", pack('{"\ud800": 1}')),
    ("overlong UTF-8", "header-not-utf8", pack(b'{"\xc0\xaf": 1}')),
    ("nesting bomb", "header-too-deep", pack('{"w": ' + "[" * 100_000 + "]" * 100_000 + "}")),
    ("nesting bomb in a string", "header-not-json", pack('{"' + "[" * 100_000)),
    ("not JSON", "header-not-json", pack("{w: 1}")),
    ("trailing comma", "header-not-json", pack(json.dumps(one())[:-1] + ",}")),
    ("text after the object", "header-not-json", pack(json.dumps(one()) + "x")),
    ("zero bytes after the object", "header-not-json", pack(json.dumps(one()) + "\0\0")),
    ("NaN", "header-not-json", pack(raw(shape="[NaN]"))),
    ("Infinity", "header-not-json", pack(raw(shape="[Infinity]"))),
    ("leading zero", "header-not-json", pack(raw(shape="[02, 3]"))),
    ("control character in a string", "header-not-json", pack('{"a\nb": 1}')),
    ("bad escape", "header-not-json", pack('{"a\\x": 1}')),
    ("unfinished escape", "header-not-json", pack('{"a\\')),
    ("form feed as a blank", "header-not-json", pack(json.dumps(one()) + "\f")),
    ("key twice", "header-duplicate-key", pack(json.dumps(one())[:-1] + ', "w": ' + json.dumps(ENTRY) + "}")),
    ("key twice by escape", "header-duplicate-key", pack('{"w": 1, "\\u0077": 1}')),
    ("field twice", "header-duplicate-key", pack('{"w": {"dtype": "F32", "dtype": "F16"}}')),
    ("metadata is a list", "metadata-not-strings", pack({"__metadata__": [], **one()})),
    ("metadata is null", "metadata-not-strings", pack({"__metadata__": None, **one()})),
    ("metadata holds a number", "metadata-not-strings", pack({"__metadata__": {"a": 1}, **one()})),
    ("too many tensors", "too-many-tensors", pack({f"t{i}": 0 for i in range(10_001)})),
    ("name climbs", "name-path", pack(named("../w"))),
    ("name is absolute", "name-path", pack(named("/etc/passwd"))),
    ("name with a backslash", "name-path", pack(named("a\\b"))),
    ("name with two dots", "name-path", pack(named("a..b"))),
    ("name with an escape sequence", "name-characters", pack(named("a\x1b[31mb"))),
    ("name with NUL", "name-characters", pack(named("a\0"))),
    ("name with a lone surrogate", "name-characters", pack('{"\\ud800": ' + json.dumps(ENTRY) + "}")),
    ("name turns the text around", "name-characters", pack(named("a\u202eb"))),
    ("name in look-alike letters", "name-characters", pack(named("mоdel"))),
    ("name is markup", "name-characters", pack(named("<img src=x>"))),
    ("name ends with a newline", "name-characters", pack(named("w\n"))),
    ("empty name", "name-characters", pack(named(""))),
    ("name too long", "name-too-long", pack(named("n" * 201))),
    ("name is __proto__", "name-reserved", pack(named("__proto__"))),
    ("name holds constructor", "name-reserved", pack(named("a.constructor.b"))),
    ("entry is a number", "entry-fields", pack({"w": 1})),
    ("entry lacks dtype", "entry-fields", pack({"w": {"shape": [6], "data_offsets": [0, 24]}})),
    ("entry has more", "entry-fields", pack(one(extra=1))),
    ("dtype unknown", "unknown-dtype", pack(one(dtype="F31"))),
    ("dtype in small letters", "unknown-dtype", pack(one(dtype="f32"))),
    ("dtype is a number", "unknown-dtype", pack(one(dtype=32))),
    ("dtype is toString", "unknown-dtype", pack(one(dtype="toString"))),
    ("shape is null", "shape-not-integers", pack(one(shape=None))),
    ("shape is an object", "shape-not-integers", pack(one(shape={}))),
    ("shape holds a string", "shape-not-integers", pack(one(shape=["2", 3]))),
    ("shape holds true", "shape-not-integers", pack(one(shape=[True, 6]))),
    ("shape is nested", "shape-not-integers", pack(one(shape=[[2, 3]]))),
    ("shape holds 2.0", "shape-not-integers", pack(raw(shape="[2.0, 3]"))),
    ("shape holds 2e0", "shape-not-integers", pack(raw(shape="[2e0, 3]"))),
    ("shape negative", "shape-negative", pack(one(shape=[-2, -3]))),
    ("shape minus zero", "shape-negative", pack(raw(shape="[-0, 3]"))),
    ("shape with nine dimensions", "shape-rank", pack(one(shape=[1] * 7 + [2, 3]))),
    ("shape wraps around 64 bits", "shape-overflow", pack(one(shape=[2**62, 4]))),
    ("shape wraps to the right size", "shape-overflow", pack(one(shape=[2**61 + 3, 2]))),
    ("shape overflows before a zero", "shape-overflow", pack(one(shape=[2**52, 2**52, 0], data_offsets=[0, 0]), b"")),
    ("shape beyond exact numbers", "shape-overflow", pack(one(shape=[2**53]))),
    ("shape of five thousand digits", "shape-overflow", pack(raw(shape="[1" + "0" * 5000 + "]"))),
    ("offsets missing one", "offsets-not-integers", pack(one(data_offsets=[24]))),
    ("offsets of three", "offsets-not-integers", pack(one(data_offsets=[0, 12, 24]))),
    ("offsets as strings", "offsets-not-integers", pack(one(data_offsets=["0", "24"]))),
    ("offset 24.0", "offsets-not-integers", pack(raw(offsets="[0, 24.0]"))),
    ("offset negative", "offsets-not-integers", pack(one(data_offsets=[-24, 0]))),
    ("offsets reversed", "offsets-reversed", pack(one(data_offsets=[24, 0]))),
    ("offsets outside", "offsets-outside-file", pack(one(shape=[7], data_offsets=[0, 28]))),
    ("data cut short", "offsets-outside-file", pack(one(), bytes(23))),
    ("offset of five thousand digits", "offsets-outside-file", pack(raw(offsets="[0, 1" + "0" * 5000 + "]"))),
    ("size differs", "size-mismatch", pack(one(shape=[2, 2]))),
    ("dtype of another size", "size-mismatch", pack(one(dtype="F16"))),
    ("overlap", "overlap", pack(two([0, 16], [8, 24]))),
    ("same bytes twice", "overlap", pack(two([0, 24], [0, 24]))),
    ("hole at the start", "hole", pack(one(shape=[5], data_offsets=[4, 24]))),
    ("hole between", "hole", pack(two([0, 8], [16, 24]))),
    ("trailing byte", "trailing-bytes", pack(one(), bytes(25))),
    ("data without tensors", "trailing-bytes", pack("{}")),
]
FILES = [Attack(name, code, {"model.safetensors": data}) for name, code, data in _FILES]

A, B = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
SHARDS = {A: pack(named("a")), B: pack(named("b"))}
MAP = {"a": A, "b": B}
CONFIG = {"config.json": b'{"model_type": "llama"}'}


def index(weight_map: object = None, total: object = 48, text: str | bytes | None = None) -> dict[str, bytes]:
    """An index file. text: written as it is."""
    value = {"metadata": {"total_size": total}, "weight_map": MAP if weight_map is None else weight_map}
    data = json.dumps(value) if text is None else text
    return {"model.safetensors.index.json": data if isinstance(data, bytes) else data.encode()}


def sharded(name: str, code: str | None, index_file: dict[str, bytes], **shards: bytes) -> Attack:
    """A folder with an index and two shards; a= and b= replace one, drop= leaves one out."""
    files = SHARDS | {{"a": A, "b": B}[key]: data for key, data in shards.items()}
    return Attack(name, code, CONFIG | index_file | {key: data for key, data in files.items() if data})


BLOCK_BYTES = {"U32": 4, "I8": 1, "F16": 2, "F32": 4}


def blocks(name: str, code: str | None, *parts: tuple[str, str, list[int]]) -> Attack:
    """A folder whose file holds these tensors (name, dtype, shape), one after the other."""
    header, end = {}, 0
    for tensor, dtype, shape in parts:
        begin, end = end, end + math.prod(shape) * BLOCK_BYTES[dtype]
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    return Attack(name, code, CONFIG | {"model.safetensors": pack(header, bytes(end))})


Q4, D4 = ("w.q4_1", "U32", [3, 8]), ("w.scales", "F16", [3, 2, 2])
Q8, D8 = ("w.q8_0", "I8", [3, 64]), ("w.scales", "F16", [3, 2])
BLOCKS = [
    blocks("control Q4_1", None, Q4, D4),
    blocks("control Q8_0, scales first", None, D8, Q8),
    blocks("control two matrices", None, Q4, D4, ("v.q8_0", "I8", [1, 32]), ("v.scales", "F16", [1, 1])),
    blocks("control name that is no block type", None, ("w.q4", "F32", [2]), ("q4_1", "F32", [2])),
    blocks("block type unknown", "block-kind", ("w.q5_0", "U32", [3, 8]), D4),
    blocks("block type of another family", "block-kind", ("w.q4_k", "U32", [3, 8]), D4),
    blocks("quants without scales", "block-pair", Q4),
    blocks("scales without quants", "block-pair", D4),
    blocks("scales of another matrix", "block-pair", Q4, ("v.scales", "F16", [3, 2, 2])),
    blocks("matrix plain and in blocks", "block-twice", Q4, D4, ("w", "F32", [3, 64])),
    blocks("matrix in two block types", "block-twice", Q4, D4, Q8),
    blocks("quants of another type", "block-shape", ("w.q4_1", "F32", [3, 8]), D4),
    blocks("quants in bytes", "block-shape", ("w.q4_1", "I8", [3, 32]), ("w.scales", "F16", [3, 1, 2])),
    blocks("quants of one size", "block-shape", ("w.q8_0", "I8", [64]), ("w.scales", "F16", [2])),
    blocks("quants of no size", "block-shape", ("w.q8_0", "I8", []), ("w.scales", "F16", [1])),
    blocks("rows end within a block", "block-shape", ("w.q8_0", "I8", [3, 48]), D8),
    blocks("scales in float32", "block-shape", Q4, ("w.scales", "F32", [3, 2, 2])),
    blocks("too few scales", "block-shape", Q4, ("w.scales", "F16", [3, 1, 2])),
    blocks("scales of the other block type", "block-shape", Q4, ("w.scales", "F16", [3, 2])),
    blocks("scales turned", "block-shape", Q8, ("w.scales", "F16", [2, 3])),
    blocks("integers that are no quants", "weight-dtype", Q4, D4, ("v", "U32", [2])),
]
FOLDERS = [
    *BLOCKS,
    Attack("control single", None, CONFIG | {"model.safetensors": pack(one())}),
    Attack("weights are integers", "weight-dtype", CONFIG | {"model.safetensors": pack(one(dtype="I32"))}),
    Attack("no weights in the file", "no-tensors", CONFIG | {"model.safetensors": pack("{}", b"")}),
]
PYTHON_FOLDERS = [
    sharded("control shards", None, index()),
    sharded("control no total", None, index(text=json.dumps({"weight_map": MAP}))),
    sharded("index bad UTF-8", "index-not-utf8", index(text=b'{"\xff": 1}')),
    sharded("index too deep", "index-too-deep", index(text="[" * 50_000)),
    sharded("index not JSON", "index-not-json", index(text="{")),
    sharded("index a list", "index-not-json", index(text="[]")),
    sharded("index key twice", "index-duplicate-key", index(text='{"weight_map": {"a": "x", "a": "y"}}')),
    sharded("index too large", "index-too-large", index(text=" " * (8 * 1024 * 1024 + 1))),
    sharded("index without map", "index-fields", index(text="{}")),
    sharded("index maps to numbers", "index-fields", index({"a": 1, "b": 2})),
    sharded("index metadata a list", "index-fields", index(text=json.dumps({"metadata": [], "weight_map": MAP}))),
    sharded("shard climbs out", "index-shard-path", index({"a": "../" + A, "b": B})),
    sharded("shard absolute", "index-shard-path", index({"a": "/tmp/" + A, "b": B})),
    sharded("shard is config", "index-shard-path", index({"a": "config.json", "b": B})),
    sharded("shard hidden", "index-shard-path", index({"a": ".a.safetensors", "b": B})),
    sharded("shard with a newline", "index-shard-path", index({"a": A + "\n", "b": B})),
    sharded("shard missing", "index-shard-missing", index(), b=b""),
    sharded("shard broken", "trailing-bytes", index(), b=pack(named("b"), bytes(25))),
    sharded("tensor in two shards", "tensor-in-two-shards", index(), b=pack(two([0, 12], [12, 24]))),
    sharded("tensor in the other shard", "index-wrong-shard", index({"a": B, "b": A})),
    sharded("tensor in no shard", "index-tensor-missing", index(MAP | {"c": A})),
    sharded("tensor not listed", "index-tensor-unlisted", index(), a=pack({"a": ENTRY, "c": EMPTY})),
    sharded("total too large", "index-total-size", index(total=49)),
    sharded("total as text", "index-total-size", index(total="48")),
    sharded("total 48.0", "index-total-size", index(total=48.0)),
    Attack("no config", "file-missing", {"model.safetensors": pack(one())}),
    Attack("no weights", "file-missing", CONFIG),
    sharded("two layouts", "two-layouts", index() | {"model.safetensors": pack(one())}),
    Attack("config not JSON", "config-not-json", {"config.json": b"{", "model.safetensors": pack(one())}),
    Attack("config NaN", "config-not-json", {"config.json": b'{"a": NaN}', "model.safetensors": pack(one())}),
    Attack("config a list", "config-not-json", {"config.json": b"[]", "model.safetensors": pack(one())}),
    Attack("config twice", "config-duplicate-key", {"config.json": b'{"a":1,"a":2}', "model.safetensors": pack(one())}),
    Attack("config bad UTF-8", "config-not-utf8", {"config.json": b'{"\xff":1}', "model.safetensors": pack(one())}),
    Attack("config bomb", "config-too-deep", {"config.json": b"[" * 90_000, "model.safetensors": pack(one())}),
    Attack("config large", "config-too-large", {"config.json": b" " * 1048577, "model.safetensors": pack(one())}),
]
