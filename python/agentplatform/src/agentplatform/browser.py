"""A session of the platform's browser: a Chromium in a sandbox of its own, driven by CDP."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

#: The browser that every account has.
BUILT_IN = "aws.browser.v1"

#: Longest time for which the address of a live view may count.
LONGEST_VIEW_SECONDS = 300

#: Seconds after which the start of a session is given up; the first one of a machine makes its image.
READ_TIMEOUT = 120


class BrowserClient:
    """
    `start()` opens a session, `generate_ws_headers()` says where and how programs drive it, `stop()` ends it; a `with` block does the
    first and the last.

    May be used by several threads. Methods raise the errors of boto3 (`botocore.exceptions.ClientError`).
    """

    def __init__(
        self,
        region: str | None = None,
        *,
        identifier: str = BUILT_IN,
        session_id: str | None = None,
        boto3_session: Any = None,
        **client_options: Any,
    ) -> None:
        """
        Region, endpoint and credentials may come from the environment, as for every boto3 client. `identifier` is the id or ARN of a
        browser, `session_id` a session that is open already; `client_options` go to `boto3.client`, e.g. `endpoint_url`. Raises ImportError without boto3.
        """
        import boto3
        from botocore.config import Config

        self.identifier = identifier
        self._session = boto3_session or boto3.Session(region_name=region)
        # An action must not be made twice.
        config = Config(read_timeout=READ_TIMEOUT, retries={"total_max_attempts": 1}).merge(client_options.pop("config", Config()))
        options = {**({} if region is None else {"region_name": region}), **client_options, "config": config}
        self._client = self._session.client("bedrock-agentcore", **options)
        self._lock = threading.Lock()
        self._session_id = session_id

    @property
    def session_id(self) -> str | None:
        """The id of the open session."""
        return self._session_id

    def start(
        self,
        *,
        name: str | None = None,
        session_timeout_seconds: int | None = None,
        viewport: Mapping[str, int] | None = None,
    ) -> str:
        """
        Opens a session and returns its id; the id of the open one when there is one. It ends by itself after
        `session_timeout_seconds` (3600 when absent, at most 28800); `viewport` is `{"width": …, "height": …}`.
        """
        with self._lock:
            if self._session_id is None:
                wish = {"name": name, "sessionTimeoutSeconds": session_timeout_seconds, "viewPort": viewport}
                answer = self._client.start_browser_session(
                    browserIdentifier=self.identifier,
                    **{key: value for key, value in wish.items() if value is not None},
                )
                self._session_id = str(answer["sessionId"])
            return self._session_id

    def generate_ws_headers(self) -> tuple[str, dict[str, str]]:
        """
        Where a program drives the session (CDP), and the signed headers that let it in, which count for five minutes. Opens a session
        when none is open.
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        answer = self._client.get_browser_session(browserIdentifier=self.identifier, sessionId=self.start())
        url = str(answer["streams"]["automationStream"]["streamEndpoint"])
        # What is signed is the HTTP request that a handshake is.
        request = AWSRequest("GET", url.replace("ws", "http", 1), headers={"host": urlsplit(url).netloc})
        credentials = self._client._request_signer._credentials.get_frozen_credentials()
        SigV4Auth(credentials, "bedrock-agentcore", self._client.meta.region_name).add_auth(request)
        return url, dict(request.headers.items())

    def generate_live_view_url(self, expires: int = 300, *, read_only: bool = False) -> str:
        """
        An address at which a person watches the session in a browser and takes control of it; with `read_only` he only watches. It counts
        for `expires` seconds, at most 300; the page goes on after that. Opens a session when none is open. Raises ValueError above 300.
        """
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest

        if not 0 < expires <= LONGEST_VIEW_SECONDS:
            raise ValueError(f"expires must be between 1 and {LONGEST_VIEW_SECONDS} seconds")
        answer = self._client.get_browser_session(browserIdentifier=self.identifier, sessionId=self.start())
        url = str(answer["streams"]["liveViewStream"]["streamEndpoint"])
        mode = {"mode": "read-only"} if read_only else {}
        request = AWSRequest("GET", url, params=mode, headers={"host": urlsplit(url).netloc})
        credentials = self._client._request_signer._credentials.get_frozen_credentials()
        SigV4QueryAuth(credentials, "bedrock-agentcore", self._client.meta.region_name, expires=expires).add_auth(request)
        return str(request.url)

    def invoke(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """
        Does one action of the mouse or the keyboard, or takes a picture, e.g. `invoke({"mouseClick": {"x": 1, "y": 2}})`. What the
        browser cannot do is a result with `FAILED`.
        """
        answer = self._client.invoke_browser(browserIdentifier=self.identifier, sessionId=self.start(), action=dict(action))
        return dict(answer["result"])

    def take_control(self) -> None:
        """A person drives the browser from now on: programs are cut off."""
        self._set_automation("DISABLED")

    def release_control(self) -> None:
        """Programs may drive the browser again."""
        self._set_automation("ENABLED")

    def _set_automation(self, status: str) -> None:
        self._client.update_browser_stream(
            browserIdentifier=self.identifier,
            sessionId=self.start(),
            streamUpdate={"automationStreamUpdate": {"streamStatus": status}},
        )

    def stop(self) -> None:
        """Ends the session; does nothing when none is open."""
        with self._lock:
            session_id, self._session_id = self._session_id, None
            if session_id is not None:
                self._client.stop_browser_session(browserIdentifier=self.identifier, sessionId=session_id)

    def __enter__(self) -> "BrowserClient":
        self.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()


@contextmanager
def browser_session(
    region: str | None = None,
    *,
    identifier: str = BUILT_IN,
    name: str | None = None,
    session_timeout_seconds: int | None = None,
    viewport: Mapping[str, int] | None = None,
    **client_options: Any,
) -> Iterator[BrowserClient]:
    """A client with an open session, which ends with the block."""
    client = BrowserClient(region, identifier=identifier, **client_options)
    client.start(name=name, session_timeout_seconds=session_timeout_seconds, viewport=viewport)
    try:
        yield client
    finally:
        client.stop()
