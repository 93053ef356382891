"""How long from opening the page to the first heatmaps of its default prompt, on SwiftShader in Chromium.

    python -m bench.first_heatmaps [--runs 3] [--model tiny]

Cold: a server that has just started and a browser profile that has never been used, so that nothing is cached or
compiled yet. Warm: the same profile and server again in a new tab. All times are ms after the navigation began, in the
page's own clock: chips (the tokens are there), head (the chosen head in full), first (a first row of thumbnails), wall
(every head drawn), next (the next-token bars). Targets: first heatmaps within 2,000 ms warm and 5,000 ms cold.
Run it on a machine that does nothing else.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import BrowserContext, Playwright, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
FLAGS = [
    *("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-gpu-watchdog"),
    *("--disable-component-update", "--disable-sync", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"),
]
STAGES = ("chips", "head", "first", "wall", "next")
WATCH = """(() => {
  const seen = globalThis.seenAt = {};
  const conditions = {
    chips: () => document.querySelector('.chip'),
    head: () => document.querySelector('#head')?.dataset.head && document.querySelector('#row-bars .bar'),
    first: () => Number(document.querySelector('#wall')?.dataset.drawn) > 0,
    wall: () => {
      const { layers, drawn } = document.querySelector('#wall')?.dataset ?? {};
      return layers && drawn === layers;
    },
    next: () => document.querySelector('#next-bars li'),
  };
  const look = () => {
    for (const [name, is] of Object.entries(conditions)) if (!(name in seen) && is()) seen[name] = performance.now();
    if (Object.keys(seen).length < 5) requestAnimationFrame(look);
  };
  look();
})()"""

# A tab that is closed while it compiles ahead would leave its compiler to the next one.
IDLE = """new Promise((done) => {
  const look = () => performance.getEntriesByName('all compiled').length ? done() : setTimeout(look, 50);
  look();
})"""


def main(argv: list[str]) -> int:
    """Measure and print one table; exit status 1 when a target is missed."""
    parser = argparse.ArgumentParser(description="Time from opening the page to its first heatmaps.")
    parser.add_argument("--runs", type=int, default=3, help="cold starts to measure (default 3)")
    parser.add_argument("--model", default="tiny", help="catalogue id or folder (default tiny)")
    options = parser.parse_args(argv)
    rows = {"cold": [], "warm": []}
    with sync_playwright() as playwright:
        for _ in range(options.runs):
            cold, warm = measure(playwright, options.model)
            rows["cold"].append(cold)
            rows["warm"].append(warm)
    print("        " + "".join(f"{stage:>8}" for stage in STAGES) + "   ms, median of " + str(options.runs))
    median = {}
    for name, times in rows.items():
        median[name] = {stage: statistics.median(time[stage] for time in times) for stage in STAGES}
        print(f"{name:<8}" + "".join(f"{median[name][stage]:8.0f}" for stage in STAGES))
    return int(median["cold"]["wall"] > 5000 or median["warm"]["wall"] > 2000)


def measure(playwright: Playwright, model: str) -> tuple[dict, dict]:
    """One cold opening and one warm one: ms of every stage."""
    command = [sys.executable, "-m", "server.cli", "serve", "--port", "0", "--model", model]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    profile = tempfile.mkdtemp(prefix="first-heatmaps-")
    try:
        url = next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium, args=["--headless=new", *FLAGS], viewport={"width": 1440, "height": 900}
        )
        try:
            return opened(context, url), opened(context, url)
        finally:
            context.close()
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
        shutil.rmtree(profile, ignore_errors=True)


def opened(context: BrowserContext, url: str) -> dict:
    """Open the page in a new tab and wait until everything is drawn."""
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(url)
    done = "Object.keys(globalThis.seenAt).length === 5"
    wait = f"new Promise((done) => {{ const look = () => {done} ? done(seenAt) : setTimeout(look, 20); look(); }})"
    seen = page.evaluate(wait)
    page.evaluate(IDLE)
    page.close()
    return seen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
