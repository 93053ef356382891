"""Typed access to a JSON object whose values may be anything: each getter gives a checked value or refuses by name."""

from .errors import UnsupportedConfig

ABSENT = ...
LARGEST = 2**31 - 1


class Fields:
    """A view of a JSON object. prefix: where it stands in config.json, for messages ("rope_parameters.")."""

    def __init__(self, raw: dict, prefix: str = ""):
        self.raw, self.prefix = raw, prefix

    def get(self, name: str, default: object = None) -> object:
        """The value as it is; `default` when absent or null."""
        value = self.raw.get(name)
        return default if value is None else value

    def refuse(self, name: str, allowed: str, used: object = None) -> UnsupportedConfig:
        """The error for this field, to be raised. used: the value that stands for one that is absent or null."""
        value = self.raw.get(name, ABSENT) if used is None else used
        return UnsupportedConfig(self.prefix + name, value, allowed)

    def integer(self, name: str, default: int | None = None, *, least: int = 1, most: int = LARGEST) -> int:
        """A whole number from least to most; 4.0 is one, as in JSON. Refused: absent without a default, true, 4.5."""
        value = self.get(name, default)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise self.refuse(name, f"a whole number from {least} to {most}", value)
        return value

    def number(self, name: str, default: float | None = None, *, least: float = 0.001, most: float = 1e6) -> float:
        """A number from least to most. By default what RoPE's factors may be, far from where float64 gives way."""
        value = self.get(name, default)
        if type(value) not in (int, float) or not least <= value <= most:
            raise self.refuse(name, f"a number from {least:g} to {most:g}", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        value = self.get(name, default)
        if type(value) is not bool:
            raise self.refuse(name, "true or false")
        return value

    def only(self, name: str, *allowed: object) -> None:
        """Refuse a field that is there and is none of the allowed values (null and absent always pass)."""
        value = self.get(name)
        if value is not None and not any(value == choice and type(value) is type(choice) for choice in allowed):
            raise self.refuse(name, " or ".join(["none", *(str(choice).lower() for choice in allowed)]))
