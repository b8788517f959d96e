"""The Python SDK 2.x signs in.

usage: python2.py legacy|modern http URL
"""

import sys

import anyio
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata
from memory import REDIRECT, Memory, User, refused
from pydantic import AnyUrl


async def visit(era: str, url: str, memory: Memory, user: User) -> str:
    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**user.back)

    metadata = OAuthClientMetadata(
        client_name="a peer", redirect_uris=[AnyUrl(REDIRECT)], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(url, metadata, memory, user.visit, back)
    mode = "2026-07-28" if era == "modern" else era
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            listed = await client.list_tools()
            assert any(tool.name == "echo_ping" for tool in listed.tools)
            called = await client.call_tool("echo_ping", {})
            return called.content[0].text


async def main(era: str, url: str) -> None:
    challenge = refused(url)
    assert 'scope="mcp"' in challenge and "resource_metadata=" in challenge, challenge
    print("ok a stranger is told where to sign in", flush=True)
    memory, user = Memory(), User()
    assert await visit(era, url, memory, user) == "pong"
    assert user.visits == 1, user.visits
    print("ok the user signs in", flush=True)
    assert await visit(era, url, memory, user) == "pong"
    assert user.visits == 1, user.visits
    print("ok with its token it is let in again", flush=True)


anyio.run(main, sys.argv[1], sys.argv[3])
