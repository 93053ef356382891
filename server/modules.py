"""The page's modules, found by following imports: a browser that is told them all at once fetches them side by side.

Left to itself it learns of a module only from the one that imports it, six rounds deep.
"""

import posixpath
import re
from functools import cache

from server.assets import STATIC

ENTRY = "app/main.js"
# A static import or re-export at the start of a line; `import(...)` is for what may never be needed.
_IMPORT = re.compile(r'^(?:import|export)\b[^;"]*?"([^"]+\.m?js)"', re.MULTILINE)


@cache
def page_modules() -> tuple[str, ...]:
    """main.js and all that it imports, nearest first: paths in static/, or addresses that begin with a slash."""
    found, waiting = [], [ENTRY]
    while waiting:
        address = waiting.pop(0)
        if address in found:
            continue
        found.append(address)
        path = STATIC / address
        if not address.startswith("/") and path.is_file():
            folder = posixpath.dirname(address)
            imports = _IMPORT.findall(path.read_text("utf-8"))
            waiting += [posixpath.normpath(posixpath.join(folder, name)) for name in imports]
    return tuple(found)
