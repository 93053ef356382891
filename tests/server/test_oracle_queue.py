"""The oracle's queue, with small programs in place of the oracle: order, limits, timeouts, deaths, hang-ups."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest

from server.errors import ClientGone, InvalidRequest, OracleBusy, OracleFailed, OracleTimeout
from server.frames import pack, pack_json, read_frame
from server.oracle_queue import LOAD_S, OracleQueue

# Answers with its process id and what it was asked; "die", "hang" and "refuse" do that; "wait" reads a file that a test
# feeds, so that nothing depends on the clock.
FAKE = """
import json, os, sys, time
sys.path.insert(0, {root!r})
from server.frames import pack, pack_json, read_frame
while (frame := read_frame(sys.stdin.buffer)) is not None:
    what = json.loads(frame)["what"]
    if what == "die":
        os._exit(7)
    if what == "hang":
        time.sleep(600)
    if what == "refuse":
        reply = pack_json({{"ok": False, "code": "invalid-request", "message": "No."}})
    else:
        if what.startswith("wait "):
            open(what[5:], "rb").read()
        reply = pack_json({{"ok": True}}) + pack(f"{{os.getpid()}} {{what}}".encode())
    sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A named pipe: whoever reads it waits until it is written."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


@pytest.fixture
def queue(root: Path) -> OracleQueue:
    command = (sys.executable, "-c", FAKE.format(root=str(root)))
    return OracleQueue(timeout_s=60, waiting=2, command=command)


async def never() -> None:
    await asyncio.Event().wait()


def run(queue: OracleQueue, work) -> None:
    """Run a coroutine function and stop the child whatever happens."""

    async def all_of_it() -> None:
        try:
            await work()
        finally:
            await queue.close()

    asyncio.run(all_of_it())


async def pid_of(queue: OracleQueue) -> int:
    return int((await queue.ask({"what": "pid"}, never)).split()[0])


def test_queue_keeps_its_child(queue: OracleQueue) -> None:
    async def work() -> None:
        assert await pid_of(queue) == await pid_of(queue)

    run(queue, work)


def test_queue_gives_a_model_that_must_load_more_time(queue: OracleQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(asyncio, "timeout", lambda limit_s: limits.append(limit_s) or contextlib.nullcontext())
    monkeypatch.setattr(queue, "_exchange", lambda question: asyncio.sleep(0, b""))

    async def work() -> None:
        for folder in ("a", "a", "b"):
            await queue.ask({"what": "pid", "folder": folder}, never)

    run(queue, work)
    assert limits == [60 + LOAD_S, 60, 60 + LOAD_S]


def test_queue_refusal_of_the_child_is_its_error_and_the_child_lives(queue: OracleQueue) -> None:
    async def work() -> None:
        first = await pid_of(queue)
        with pytest.raises(InvalidRequest, match="No"):
            await queue.ask({"what": "refuse"}, never)
        assert await pid_of(queue) == first

    run(queue, work)


def test_queue_child_that_dies_is_replaced(queue: OracleQueue) -> None:
    async def work() -> None:
        first = await pid_of(queue)
        with pytest.raises(OracleFailed, match="exit status 7"):
            await queue.ask({"what": "die"}, never)
        assert queue.last_failure
        assert await pid_of(queue) != first
        assert queue.last_failure is None

    run(queue, work)


def test_queue_child_that_hangs_is_killed_and_replaced(queue: OracleQueue) -> None:
    async def work() -> None:
        first = await pid_of(queue)
        child = queue._child
        queue.timeout_s = 0.2
        with pytest.raises(OracleTimeout, match="within 0"):
            await queue.ask({"what": "hang"}, never)
        assert await child.wait() == -9
        queue.timeout_s = 60
        assert await pid_of(queue) != first

    run(queue, work)


def test_queue_full_refuses_with_retry_after(queue: OracleQueue, gate: Path) -> None:
    async def work() -> None:
        asked = [asyncio.create_task(queue.ask({"what": f"wait {gate}"}, never))]
        asked += [asyncio.create_task(queue.ask({"what": name}, never)) for name in ("second", "third")]
        while queue._pending < 3:
            await asyncio.sleep(0)
        with pytest.raises(OracleBusy) as caught:
            await queue.ask({"what": "fourth"}, never)
        assert int(caught.value.headers["Retry-After"]) > 0
        await asyncio.to_thread(gate.write_text, "go")
        answers = [(await task).split()[1] for task in asked]
        assert answers == [b"wait", b"second", b"third"]

    run(queue, work)


def test_queue_client_that_hangs_up_while_waiting_loses_its_place(queue: OracleQueue, gate: Path) -> None:
    async def work() -> None:
        hung_up = asyncio.Event()
        running = asyncio.create_task(queue.ask({"what": f"wait {gate}"}, never))
        waiting = asyncio.create_task(queue.ask({"what": "waiting"}, hung_up.wait))
        while queue._pending < 2 or not queue._turn.locked():
            await asyncio.sleep(0)
        hung_up.set()
        with pytest.raises(ClientGone):
            await waiting
        assert queue._pending == 1
        await asyncio.to_thread(gate.write_text, "go")
        assert (await running).split()[1] == b"wait"
        await pid_of(queue)  # the turn was given back

    run(queue, work)


def test_queue_task_cancelled_while_running_does_not_mix_up_answers(queue: OracleQueue, gate: Path) -> None:
    async def work() -> None:
        first = await pid_of(queue)
        task = asyncio.create_task(queue.ask({"what": f"wait {gate}"}, never))
        pipe = await asyncio.to_thread(gate.open, "w")  # returns once the child has opened the other end
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        pipe.close()
        answer = (await queue.ask({"what": "next"}, never)).split()
        assert answer[1] == b"next" and int(answer[0]) != first

    run(queue, work)


def test_queue_command_missing_is_a_failure(queue: OracleQueue) -> None:
    queue.command = ("/nonexistent/python",)

    async def work() -> None:
        with pytest.raises(OracleFailed, match="could not be started"):
            await pid_of(queue)

    run(queue, work)


def test_frame_cut_short_raises(tmp_path: Path) -> None:
    path = tmp_path / "frames"
    path.write_bytes(pack(b"abc") + pack_json([1])[:-1])
    with path.open("rb") as pipe:
        assert read_frame(pipe) == b"abc"
        with pytest.raises(EOFError):
            read_frame(pipe)
    path.write_bytes(pack(b""))
    with path.open("rb") as pipe:
        assert read_frame(pipe) == b"" and read_frame(pipe) is None
