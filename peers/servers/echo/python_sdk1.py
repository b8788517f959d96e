"""An echo server made with the Python SDK 1.x.

usage: python_sdk1.py stdio | http PORT | sse PORT
"""

import sys

from mcp.server.fastmcp import FastMCP

TRANSPORTS = {"stdio": "stdio", "http": "streamable-http", "sse": "sse"}

if len(sys.argv) < 2 or sys.argv[1] not in TRANSPORTS:
    sys.exit(__doc__)
transport, *port = sys.argv[1:]
server = FastMCP("python1", port=int(*port or ["0"]))


@server.tool()
def echo(text: str) -> str:
    """Says what it is told."""
    return f"echo: {text}"


server.run(TRANSPORTS[transport])
