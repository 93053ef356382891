"""What a measurement refuses, one class per rule; each message is one sentence: given, allowed, what to do."""


class BenchError(ValueError):
    """A measurement that gives no figure."""


class BadArguments(BenchError):
    """An operation, a size or a name that no measurement takes."""


class WrongResult(BenchError):
    """The result differs from float64: a wrong kernel has no speed."""


class Unavailable(BenchError):
    """A driver, browser, model or peer that this machine does not have."""
