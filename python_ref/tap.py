"""Taps: how the intermediates of a forward pass are seen, and changed.

Wherever a value has a name the modules write `x = tap("name", x)`. The default tap leaves x as it is; a trace keeps a
copy; an intervention returns something else in its place (for example z with one head's slice set to zero).
"""

from collections.abc import Callable

from torch import Tensor

Tap = Callable[[str, Tensor], Tensor]


def leave(name: str, x: Tensor) -> Tensor:
    """The tap that does nothing."""
    return x
