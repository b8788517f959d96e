"""`python -m plexus_mcp`."""

from . import main

main()
