"""`python -m constrained` is the command `constrained`."""

import sys

from constrained.cli import main

sys.exit(main())
