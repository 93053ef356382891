"""The application: pages, models, oracle API and the command line."""

__version__ = "0.1.0"
