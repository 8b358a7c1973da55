"""`python -m designer` opens the designer."""

import sys

from designer.app import main

sys.exit(main(sys.argv[1:]))
