"""An agent that gets its credentials by the vendor's own decorators."""

import asyncio

from bedrock_agentcore.identity import requires_access_token, requires_api_key
from bedrock_agentcore.runtime import BedrockAgentCoreApp

app = BedrockAgentCoreApp()
SCOPES = ["openid", "offline_access", "read"]


@requires_api_key(provider_name="search")
def key_of_search(*, api_key: str) -> str:
    return api_key


@requires_access_token(provider_name="orders", scopes=["read"], auth_flow="M2M")
async def own_token(*, access_token: str) -> str:
    return access_token


@requires_access_token(provider_name="orders", scopes=["read"], auth_flow="ON_BEHALF_OF_TOKEN_EXCHANGE")
async def exchanged_token(*, access_token: str) -> str:
    return access_token


def token_of(user: str, urls: asyncio.Queue):
    @requires_access_token(
        provider_name="orders",
        scopes=SCOPES,
        auth_flow="USER_FEDERATION",
        on_auth_url=urls.put,
        custom_parameters={"login_hint": user, "prompt": "login"},
    )
    async def token(*, access_token: str) -> str:
        return access_token

    return token()


async def federation(user: str):
    """Says where to consent as soon as that is known, and then the token."""
    urls: asyncio.Queue = asyncio.Queue()
    waiting = asyncio.ensure_future(token_of(user, urls))
    told = asyncio.ensure_future(urls.get())
    await asyncio.wait([waiting, told], return_when=asyncio.FIRST_COMPLETED)
    if told.done():
        yield {"url": told.result()}
    told.cancel()
    yield {"token": await waiting}


@app.entrypoint
async def invoke(payload):
    match payload["do"]:
        case "key":
            return {"key": key_of_search()}
        case "own":
            return {"token": await own_token()}
        case "exchange":
            return {"token": await exchanged_token()}
        case _:
            return federation(payload["user"])


app.run()
