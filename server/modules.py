"""The page's modules, found by following imports: a browser that is told them all at once fetches them side by side.

Left to itself it learns of a module only from the one that imports it, six rounds deep.
"""

import posixpath
import re
from functools import cache

from server.assets import STATIC

# The page names the first one's modules; when it runs it asks for the others, so that it need not wait for them.
FIRST, MAIN = "app/early.js", "app/main.js"
# A static import or re-export at the start of a line; `import(...)` is for what may never be needed.
_IMPORT = re.compile(r'^(?:import|export)\b[^;"]*?"([^"]+\.m?js)"', re.MULTILINE)


@cache
def page_modules() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The modules of FIRST and the others of MAIN: paths in static/, or addresses that begin with a slash."""
    first = _modules(FIRST)
    return first, tuple(address for address in _modules(MAIN) if address not in first)


def _modules(entry: str) -> tuple[str, ...]:
    """A module and all that it imports, nearest first."""
    found: dict[str, None] = {}
    waiting = [entry]
    while waiting:
        address = waiting.pop(0)
        if address not in found:
            found[address] = None
            waiting += _imports(address)
    return tuple(found)


def _imports(address: str) -> list[str]:
    path = STATIC / address
    if address.startswith("/") or not path.is_file():
        return []
    folder = posixpath.dirname(address)
    return [posixpath.normpath(posixpath.join(folder, name)) for name in _IMPORT.findall(path.read_text("utf-8"))]
