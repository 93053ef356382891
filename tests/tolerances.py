"""Every tolerance used by the tests, each with the reason for its size."""
