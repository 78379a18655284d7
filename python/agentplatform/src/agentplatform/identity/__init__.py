"""Keys and tokens of other services, for an agent that holds none of them. Needs boto3: `pip install agentplatform[identity]`."""

from .consent import ConsentError, TokenPoller
from .decorators import AuthFlow, requires_access_token, requires_api_key

__all__ = ["AuthFlow", "ConsentError", "TokenPoller", "requires_access_token", "requires_api_key"]
