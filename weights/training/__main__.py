"""`python -m weights.training`."""

import sys

from weights.training.command import main

sys.exit(main())
