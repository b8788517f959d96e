"""A proxy made with FastMCP.

usage: fastmcp_proxy.py PORT URL | COMMAND [ARGUMENT...]
"""

import sys

from fastmcp.server import create_proxy

port, *server = sys.argv[1:]
if server[0].startswith("http"):
    target = server[0]
else:
    command, *arguments = server
    target = {"mcpServers": {"up": {"command": command, "args": arguments}}}

create_proxy(target).run(
    transport="http",
    host="127.0.0.1",
    port=int(port),
    path="/mcp",
    stateless_http=True,
    json_response=True,
    show_banner=False,
    log_level="ERROR",
)
