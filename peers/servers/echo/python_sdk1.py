"""An echo server made with the Python SDK 1.x.

usage: python_sdk1.py stdio | http PORT | sse PORT
"""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("python1")


@server.tool()
def echo(text: str) -> str:
    """Says what it is told."""
    return f"echo: {text}"


match sys.argv[1:]:
    case ["stdio"]:
        server.run("stdio")
    case ["http", port]:
        server.settings.port = int(port)
        server.run("streamable-http")
    case ["sse", port]:
        server.settings.port = int(port)
        server.run("sse")
    case _:
        sys.exit(__doc__)
