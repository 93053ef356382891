"""The application: pages, models, oracle API and the command line."""
