"""Every setting of the server, read from the environment (PLAYGROUND_<NAME>) or the command line, checked at start.

A value that cannot work, or a name that does not exist, raises `BadSettings` with one sentence before anything listens.
Each field's description is its documentation; server/README.md repeats it and a test compares the two.
"""

import difflib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "PLAYGROUND_"
MIB = 1024 * 1024


class BadSettings(ValueError):
    """A setting that cannot work; the message is one sentence naming it."""


class Settings(BaseSettings):
    """The server's settings. Units stand in the names."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0 listens on every network.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    model: str | None = Field(None, description="Default model, an id or a folder; unset takes the embedded one.")
    cache: Path | None = Field(None, description="Where pulled models lie; unset is ~/.cache/attention-playground.")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Host names, comma-separated, to answer under besides 127.0.0.1, localhost, [::1] and `host`.",
    )
    max_body_bytes: int = Field(256 * 1024, ge=1024, description="Largest request body, in bytes.")
    oracle_max_tokens: int = Field(1024, ge=1, description="Longest prompt the oracle takes, in tokens.")
    oracle_max_response_bytes: int = Field(128 * MIB, ge=1024, description="Largest oracle answer, in bytes.")
    oracle_timeout_s: float = Field(
        120,
        gt=0,
        le=86400,
        description="Seconds after which a running oracle trace is killed; loading the model is not counted.",
    )
    oracle_waiting: int = Field(4, ge=0, description="Oracle requests that may wait while one runs; more get 503.")
    oracle_state: Path = Field(
        Path(sys.prefix) / "oracle-state.json", description="File in which set-up reports how far PyTorch is installed."
    )

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("allowed_hosts")
    @classmethod
    def _plain_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if "/" in host or "*" in host or " " in host:
                raise ValueError("must be plain host names without scheme, wildcard or blanks")
        return hosts

    @property
    def hosts(self) -> frozenset[str]:
        """Host names accepted in the Host header, lower case, IPv6 without brackets."""
        names = ("127.0.0.1", "localhost", "::1", self.host, *self.allowed_hosts)
        return frozenset(name.strip("[]").lower() for name in names)


def load_settings(environ: Mapping[str, str] | None = None, **given: object) -> Settings:
    """Settings from the environment, overridden by what the command line gave (None means not given).

    Raises BadSettings with one sentence for an unknown PLAYGROUND_ name or an impossible value.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(os.environ if environ is None else environ):
        if name.upper().startswith(PREFIX) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper().removeprefix(PREFIX).lower(), Settings.model_fields, 1)
            hint = f"{PREFIX}{near[0].upper()} exists" if near else "server/README.md lists the settings"
            raise BadSettings(f"There is no setting {name}; {hint}.")
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        reason = first["msg"].removeprefix("Value error, ")
        raise BadSettings(f"{PREFIX}{name.upper()} (or --{name.replace('_', '-')}) does not work: {reason}.") from None
