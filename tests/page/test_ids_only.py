"""A model that comes without a tokenizer: its prompt is a list of token ids, and everything else is as usual."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.harness import Server, Watched, running_server, type_prompt, until, wait_picture

pytestmark = pytest.mark.chromium


@pytest.fixture(scope="module")
def ids_server(small_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("models") / "ids"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(small_model / name, folder / name)
    with running_server(folder) as server:
        yield server


def test_prompt_of_ids_is_shown_and_words_are_refused(watched: Watched, ids_server: Server):
    page = watched.open(ids_server.url)
    assert page.locator(".chip").all_text_contents() == ["1", "2", "3", "1", "2", "3"]
    type_prompt(page, "7 8, 9")
    wait_picture(page)
    assert page.locator(".chip").all_text_contents() == ["7", "8", "9"]
    type_prompt(page, "7 eight")
    until(page, "!document.querySelector('#prompt-error').hidden")
    assert '"eight" is none' in page.locator("#prompt-error").text_content()
    found = page.evaluate("playground.trace('4 5').then((trace) => trace.tokens.map((token) => token.id))")
    assert found == [4, 5]
    watched.assert_clean(ids_server.url)
