"""Tasks are read from a trace as they ran: nested parts counted once, the page's thread and no other."""

from bench.main_thread import Record, tasks

NAME = {"ph": "M", "name": "thread_name", "args": {"name": "CrRendererMain"}}


def event(
    name: str, start_ms: float, wall_ms: float, thread_ms: float = 0, at: tuple[int, int] = (1, 1), **args
) -> dict:
    return {
        "ph": "X", "name": name, "ts": start_ms * 1000, "dur": wall_ms * 1000, "tdur": thread_ms * 1000, "pid": at[0],
        "tid": at[1], "args": args,
    }  # fmt: skip


def found() -> list:
    return tasks([
        {**NAME, "pid": 1, "tid": 1}, {**NAME, "pid": 2, "tid": 1},
        event("Layout", 30, 10), event("RunTask", 0, 80, 20), event("FunctionCall", 20, 40, data={"url": "/wall.js"}),
        event("RunTask", 100, 5, 5), event("RunTask", 101, 3, 3), event("Paint", 102, 2),
        event("RunTask", 0, 500, 1, at=(2, 1)), event("RunTask", 0, 900, 900, at=(1, 7)),
    ])  # fmt: skip


def test_tasks_are_those_of_the_busiest_page():
    assert [(task.wall_ms, task.thread_ms) for task in found()] == [(80, 20), (5, 5)]


def test_parts_leave_out_what_lies_inside_them():
    first, second = found()
    assert first.parts == {"FunctionCall wall.js": 30, "Layout": 10}
    assert second.parts == {"Paint": 2}
    assert first.words() == "FunctionCall wall.js 30, Layout 10"


def test_longest_and_long_tasks_of_a_record():
    record = Record(found())
    assert record.longest().wall_ms == 80
    assert len(record.long()) == 1
    assert Record().longest("thread_ms").thread_ms == 0
