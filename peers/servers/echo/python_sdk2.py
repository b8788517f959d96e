"""An echo server made with the Python SDK 2.x.

usage: python_sdk2.py stdio | http PORT
"""

import sys

from mcp.server import MCPServer

server = MCPServer("python2", version="1.0.0")


@server.tool()
def echo(text: str) -> str:
    """Says what it is told."""
    return f"echo: {text}"


match sys.argv[1:]:
    case ["stdio"]:
        server.run("stdio")
    case ["http", port]:
        server.run("streamable-http", port=int(port))
    case _:
        sys.exit(__doc__)
