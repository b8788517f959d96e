"""What the Python SDKs ask their application to remember, and to show."""

import urllib.parse
import urllib.request

REDIRECT = "http://127.0.0.1:8976/callback"


class Memory:
    """Tokens and the client's registration, for as long as the process runs."""

    def __init__(self) -> None:
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client) -> None:
        self.client = client


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args, **kwargs):
        return None


class User:
    """Agrees to everything."""

    def __init__(self) -> None:
        self.visits = 0
        self.back: dict[str, str] = {}

    async def visit(self, page: str) -> None:
        self.visits += 1
        try:
            urllib.request.build_opener(_StayHere).open(page)
        except urllib.error.HTTPError as answer:
            location = urllib.parse.urlsplit(answer.headers["location"])
            self.back = dict(urllib.parse.parse_qsl(location.query))


def refused(url: str) -> str:
    """The challenge that a stranger gets."""
    request = urllib.request.Request(url, data=b"{}", headers={"content-type": "application/json"})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError as answer:
        assert answer.code == 401, answer.code
        return answer.headers["www-authenticate"]
    raise AssertionError("a stranger was let in")
