"""The Python SDK 1.x signs in.

usage: python1.py legacy http URL
"""

import sys

import anyio
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata
from memory import REDIRECT, Memory, User, refused
from pydantic import AnyUrl


async def visit(url: str, memory: Memory, user: User) -> str:
    async def back() -> tuple[str, str | None]:
        return user.back["code"], user.back.get("state")

    metadata = OAuthClientMetadata(
        client_name="a peer", redirect_uris=[AnyUrl(REDIRECT)], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(url, metadata, memory, user.visit, back)
    async with streamablehttp_client(url, auth=auth) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            listed = await session.list_tools()
            assert any(tool.name == "echo_ping" for tool in listed.tools)
            called = await session.call_tool("echo_ping", {})
            return called.content[0].text


async def main(url: str) -> None:
    challenge = refused(url)
    assert 'scope="mcp"' in challenge and "resource_metadata=" in challenge, challenge
    print("ok a stranger is told where to sign in", flush=True)
    memory, user = Memory(), User()
    assert await visit(url, memory, user) == "pong"
    assert user.visits == 1, user.visits
    print("ok the user signs in", flush=True)
    assert await visit(url, memory, user) == "pong"
    assert user.visits == 1, user.visits
    print("ok with its token it is let in again", flush=True)


anyio.run(main, sys.argv[3])
