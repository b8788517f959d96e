"""A server made with the Python SDK.

usage: repeat_server.py stdio | http PORT json|stream
"""

import sys

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("python-repeat", version="0.0.0", log_level="ERROR")


@server.tool(structured_output=False)
async def repeat(text: str, times: int, context: Context) -> str:
    """Repeats a text."""
    await context.report_progress(1, 2)
    return text * times


match sys.argv[1:]:
    case ["stdio"]:
        server.run("stdio")
    case ["http", port, mode]:
        is_json = mode == "json"
        app = server.streamable_http_app(
            json_response=is_json, stateless_http=is_json, max_sessions=100_000
        )
        uvicorn.run(
            app,
            host="127.0.0.1",
            port=int(port),
            log_level="error",
            access_log=False,
            timeout_keep_alive=60,
        )
    case _:
        sys.exit(__doc__)
