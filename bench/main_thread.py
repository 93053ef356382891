"""What ran on the page's main thread, task by task, as Chromium's own trace tells it.

A task has two times: on the wall, and of the thread, which leaves out what it waited for a processor. Where a CPU
stands in for a GPU its threads take every core, so that a task may take long on the wall and do little. What it did is
said by its parts.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

LONG_MS = 50
"""From here on a browser calls a task long."""
CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "v8", "toplevel"]
TASK = "RunTask"
# Where in the page's own text a part of a task began.
PLACES = ("url", "scriptName", "functionName", "type", "styleSheetUrl")


@dataclass
class Task:
    """Milliseconds of one task, and those of its parts by name, each without the parts inside it."""

    wall_ms: float
    thread_ms: float
    parts: dict[str, float] = field(default_factory=dict)

    def words(self, most: int = 4) -> str:
        """What it was made of, the largest parts first."""
        parts = sorted(self.parts.items(), key=lambda part: -part[1])[:most]
        return ", ".join(f"{name} {ms:.0f}" for name, ms in parts if ms >= 1)


@dataclass
class Record:
    """Tasks of one stage, filled when its block has ended."""

    tasks: list[Task] = field(default_factory=list)

    def longest(self, key: str = "wall_ms") -> Task:
        return max(self.tasks, key=lambda task: getattr(task, key), default=Task(0, 0))

    def long(self) -> list[Task]:
        return [task for task in self.tasks if task.wall_ms >= LONG_MS]


@contextmanager
def recording(page: Page) -> Iterator[Record]:
    """Trace the page while the block runs."""
    browser = page.context.browser
    record = Record()
    browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        yield record
    finally:
        record.tasks = tasks(json.loads(browser.stop_tracing())["traceEvents"])


def tasks(events: list[dict[str, Any]]) -> list[Task]:
    """The tasks of the busiest page's main thread: a browser keeps a spare one."""
    mains = {(e["pid"], e["tid"]) for e in events if e.get("args", {}).get("name") == "CrRendererMain"}
    threads: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and (event["pid"], event["tid"]) in mains:
            threads[event["pid"], event["tid"]].append(event)
    found = [_tasks_of(sorted(thread, key=lambda e: (e["ts"], -e.get("dur", 0)))) for thread in threads.values()]
    return max(found, key=lambda each: sum(task.thread_ms for task in each), default=[])


def _tasks_of(events: list[dict[str, Any]]) -> list[Task]:
    """Tasks of one thread, from its events in order of their starts."""
    found: list[Task] = []
    open_parts: list[tuple[float, str]] = []  # end and name of the parts that the next event may lie in
    end = 0.0
    for event in events:
        start, wall_ms = event["ts"], event.get("dur", 0) / 1000
        if event["name"] == TASK:
            if start < end:
                continue  # a task that runs tasks
            end = start + event.get("dur", 0)
            found.append(Task(wall_ms, event.get("tdur", 0) / 1000))
            open_parts = []
        elif found and start < end:
            while open_parts and open_parts[-1][0] <= start:
                open_parts.pop()
            name = _name(event)
            parts = found[-1].parts
            parts[name] = parts.get(name, 0) + wall_ms
            if open_parts:
                parts[open_parts[-1][1]] -= wall_ms
            open_parts.append((start + event.get("dur", 0), name))
    return found


def _name(event: dict[str, Any]) -> str:
    data = event.get("args", {}).get("data") or {}
    place = next((str(data[name]) for name in PLACES if data.get(name)), "") if isinstance(data, dict) else ""
    return f"{event['name']} {place.rpartition('/')[2]}".strip()
