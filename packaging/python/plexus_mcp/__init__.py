"""Plexus, a gateway for the Model Context Protocol. This package carries the program."""

import os
import sys
import sysconfig


def program():
    """The path of the program, which the installer put where it puts scripts."""
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        # This file is in PREFIX/lib/pythonX.Y/site-packages/plexus_mcp.
        os.path.normpath(os.path.join(packages, "..", "..", "..", "bin")),
        # After pip install --target, it is in FOLDER/plexus_mcp.
        os.path.join(packages, "bin"),
        sysconfig.get_path("scripts"),
    ]
    for folder in folders:
        path = os.path.join(folder, "plexus")
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"plexus-mcp: the program plexus is in none of: {', '.join(folders)}")


def main():
    """Becomes the program, with the arguments of this process."""
    try:
        path = program()
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        sys.exit(str(error))
