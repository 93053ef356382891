"""What the oracle refuses, one class per rule. Each message says what was given and what is allowed."""

import json
from collections.abc import Iterable


class OracleError(ValueError):
    """Base of every refusal; `code` is the same rule in kebab-case, for programs."""

    code = "oracle-error"


class UnsupportedConfig(OracleError):
    """config.json asks for something that would not be run exactly."""

    code = "unsupported-config"

    def __init__(self, field: str, value: object, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"config.json has {field} = {shown(value)}; only {allowed} runs exactly: use another model.")


class MissingTensor(OracleError):
    """The config needs a tensor that the checkpoint does not hold."""

    code = "missing-tensor"

    def __init__(self, names: Iterable[str]):
        super().__init__(f"The checkpoint lacks {some(names)}, which its config.json asks for; fetch the model again.")


class UnexpectedTensor(OracleError):
    """The checkpoint holds a tensor that the config does not speak of: something would be left out of the sums."""

    code = "unexpected-tensor"

    def __init__(self, names: Iterable[str]):
        super().__init__(
            f"The checkpoint holds {some(names)}, which its config.json does not describe, so it would not be run "
            "exactly; take the config.json that belongs to these weights, or another model."
        )


class WrongShape(OracleError):
    """A tensor's shape is not the one that follows from the config."""

    code = "wrong-shape"

    def __init__(self, name: str, given: tuple[int, ...], needed: tuple[int, ...]):
        super().__init__(f"Tensor {name} has shape {list(given)}; config.json asks for {list(needed)}.")


class UntiedHead(OracleError):
    """A tied model stores a head of its own: transformers would run it untied, its config says otherwise."""

    code = "untied-head"

    def __init__(self, head: str, embedding: str):
        super().__init__(
            f"{head} is not equal to {embedding}, which config.json ties it to; set tie_word_embeddings to false there."
        )


class NotFinite(OracleError):
    """A weight is NaN or infinite, and with it everything computed from it."""

    code = "not-finite"

    def __init__(self, name: str):
        super().__init__(f"Tensor {name} holds NaN or infinity; fetch the model again, or use another.")


class EmptyPrompt(OracleError):
    """No token ids were given."""

    code = "empty-prompt"

    def __init__(self):
        super().__init__("The prompt has no tokens; give at least one token id.")


class UnknownTokenId(OracleError):
    """A token id is outside the vocabulary."""

    code = "unknown-token-id"

    def __init__(self, position: int, value: object, V: int):
        super().__init__(f"Token id {shown(value)} at position {position} is not in the vocabulary, 0..{V - 1}.")


class UnknownName(OracleError):
    """A trace was asked for an intermediate that this model does not have."""

    code = "unknown-name"

    def __init__(self, name: object, allowed: Iterable[str]):
        super().__init__(f"No intermediate is called {shown(name)} in this model; there are {', '.join(allowed)}.")


class UnknownLayer(OracleError):
    """A trace was asked for a layer that does not exist."""

    code = "unknown-layer"

    def __init__(self, layer: object, L: int):
        super().__init__(f"Layer {shown(layer)} is not in 0..{L - 1}, the model's layers.")


class UnevenGroups(OracleError):
    """Heads cannot be shared out evenly."""

    code = "uneven-groups"

    def __init__(self, heads: int, groups: int):
        super().__init__(f"{heads} heads do not share {groups} key/value heads evenly; give a divisor of {heads}.")


def shown(value: object) -> str:
    """A value for a message: JSON in ASCII, at most 80 characters; `absent` for a field that is not there."""
    if value is ...:
        return "absent"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


def some(names: Iterable[str]) -> str:
    """The first of the names, and how many more there are."""
    first, *rest = names
    return shown(first) + (f" and {len(rest)} more" if rest else "")
