"""`python -m engine` is `papilio`."""

from engine.cli import main

main()
