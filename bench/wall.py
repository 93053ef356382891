"""How long the wall of all heads takes: `python -m bench.wall [MODEL] [TOKENS]`, on the page itself in Chromium.

Prints milliseconds from the end of the prompt's pass to the last thumbnail, and from the last key to it (that is: a
pause of 200 ms, the pass, the wall), for several prompts of the same length.
"""

import sys

from bench.app_page import app_page, take_long_tasks, wait

WORDS = "the of and to in is that it was for on are as with his they at be this from I have or by one had not"


def prompt(tokens: int, turn: int) -> str:
    """About as many tokens as asked for; another text each turn."""
    words = WORDS.split()
    return " ".join(words[(i * (turn + 3) + turn) % len(words)] for i in range(tokens))


def main(model: str = "smollm2-135m", tokens: str = "256") -> None:
    with app_page(model) as (page, address):
        page.goto(address)
        wait(page)
        print(page.evaluate("() => document.querySelector('#device')?.textContent ?? ''").strip())
        for turn in range(4):
            take_long_tasks(page)
            text = prompt(int(tokens), turn)
            start = page.evaluate("() => { performance.clearMeasures(); return performance.now(); }")
            page.locator("#prompt-text").fill(text)
            drawn = "performance.getEntriesByName('wall drawn').length > 0"
            end = wait(page, drawn)
            wall = page.evaluate("() => performance.getEntriesByName('wall drawn')[0].duration")
            count = page.evaluate("() => Number(document.querySelector('#chips').dataset.count)")
            tasks = [round(ms) for _, ms in take_long_tasks(page)]
            print(f"{count} tokens: wall {wall:.0f} ms, from key to wall {end - start:.0f} ms, long tasks {tasks} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
