"""A prompt from the command line: text, a file, or token ids, checked against the model before anything is computed."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from server.commands import CommandError

MAX_PROMPT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Prompt:
    """What to run: token ids, the text they stand for, and one printable piece per token."""

    ids: list[int]
    text: str
    tokens: object | None  # weights.tokens.Tokens, or None for a folder without tokenizer

    def piece(self, token_id: int) -> str:
        """A token as a person reads it: quoted text, or its id where there is no tokenizer."""
        if self.tokens is None:
            return str(token_id)
        return ascii_safe(self.tokens.pieces([token_id])[0].decode("utf-8", "replace"))


def add_prompt_options(command: argparse.ArgumentParser, *, required: bool) -> None:
    """--prompt, --prompt-file and --ids; one of them."""
    group = command.add_mutually_exclusive_group(required=required)
    group.add_argument("--prompt", metavar="TEXT", help="the prompt")
    group.add_argument("--prompt-file", metavar="F", type=Path, help="a UTF-8 file that holds the prompt")
    group.add_argument("--ids", metavar="1,2,3", help="token ids instead of text")


def read_prompt(args: argparse.Namespace, folder: Path, *, default: str = "") -> Prompt:
    """The prompt that the options describe. Raises CommandError, or the tokenizer's own errors, with one sentence."""
    from weights.tokens import TokenizerMissing, load_tokenizer

    if args.ids is not None:
        ids = parse_ids(args.ids)
        try:
            tokens = load_tokenizer(folder)
        except TokenizerMissing:
            return Prompt(ids, "", None)
        known = all(token_id < tokens.size for token_id in ids)
        return Prompt(ids, tokens.decode(ids) if known else "", tokens)
    text = default if args.prompt is None else args.prompt
    if args.prompt_file is not None:
        text = read_file(args.prompt_file)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CommandError("The prompt is not valid UTF-8; put it into a UTF-8 file and use --prompt-file.") from None
    if not text:
        raise CommandError("The prompt is empty; give at least one character.")
    tokens = load_tokenizer(folder)
    return Prompt(tokens.encode(text), text, tokens)


def parse_ids(text: str) -> list[int]:
    """`1,2,3` -> [1, 2, 3]. Raises CommandError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise CommandError("--ids takes whole numbers from 0 on, separated by commas, such as 504,3575,282.")
    return [int(part) for part in parts]


def read_file(path: Path) -> str:
    """A UTF-8 file as it is, line ends included. Raises CommandError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_PROMPT_BYTES + 1)
        if len(data) > MAX_PROMPT_BYTES:
            raise CommandError(f"The prompt file has more than {MAX_PROMPT_BYTES} bytes; shorten it.")
        return data.decode("utf-8")
    except OSError as error:
        raise CommandError(f"The prompt file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CommandError(f"The prompt file {path} is not UTF-8 text; convert it first.") from None


def check_ids(ids: list[int], vocabulary: int, max_tokens: int) -> None:
    """Refuse ids outside the vocabulary and prompts longer than the model takes. Raises CommandError."""
    outside = next((token_id for token_id in ids if token_id >= vocabulary), None)
    if outside is not None:
        raise CommandError(f"Token id {outside} is not in this model's vocabulary; ids go from 0 to {vocabulary - 1}.")
    if len(ids) > max_tokens:
        raise CommandError(f"The prompt has {len(ids)} tokens and this model takes at most {max_tokens}; shorten it.")


def ascii_safe(text: str) -> str:
    """Quoted, with what cannot be printed escaped: safe in any terminal."""
    return '"' + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text) + '"'
