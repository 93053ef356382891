"""`playground serve`: start the server and print its address."""

import argparse
import asyncio
import contextlib
import logging
import socket
import sys
import threading

from server.commands import CommandError
from weights.errors import CheckpointError


def add(subparsers) -> None:
    """Describe the command's options."""
    command = subparsers.add_parser("serve", help="start the server", description="Start the server.")
    command.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    command.add_argument("--port", type=int, help="port to listen on (default 8000; 0 takes a free one)")
    command.add_argument("--model", help="default model: a catalogue id or a folder")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Raises BadSettings, a catalogue error, or CommandError when the port is taken."""
    import uvicorn

    from server.app import create_app
    from server.settings import load_settings

    settings = load_settings(host=args.host, port=args.port, model=args.model)
    app = create_app(settings)
    listener = listen(settings.host, settings.port)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, ws="none", timeout_graceful_shutdown=3
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    print(f"Attention playground: {address(settings.host, listener.getsockname()[1])}", flush=True)
    # Hashing a few hundred MB takes a second: the first page should find it done.
    threading.Thread(target=hash_models, args=(app,), daemon=True).start()
    with listener, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
    return 0


def hash_models(app) -> None:
    """Open and hash every model; what is wrong with one, /api/models says to whoever asks."""
    with contextlib.suppress(CheckpointError, OSError):
        app.state.models.describe_all()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises CommandError with one sentence when the address cannot be had."""
    try:
        family = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host.strip("[]"), port), family=family)
    except socket.gaierror:
        raise CommandError(f"There is no host {host}; choose another with --host, such as 127.0.0.1.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"Cannot listen on {host} port {port}: {reason}; choose another with --port.") from None


def address(host: str, port: int) -> str:
    """The address to type into a browser on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host.strip("[]"), host)
    return f"http://[{shown.strip('[]')}]:{port}" if ":" in shown else f"http://{shown}:{port}"
