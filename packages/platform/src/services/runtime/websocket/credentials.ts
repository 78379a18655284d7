import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';

/** What a request to open a WebSocket says of who sends it, and the subprotocols that are left. */
export interface StreamCredentials {
  bearer: string | undefined;
  /** What the client offered beside the credentials. */
  protocols: string[];
  /** The subprotocol to answer with when the agent chooses none. */
  answeredProtocol: string | undefined;
}

const BEARER_PROTOCOL = 'base64UrlBearerAuthorization';
const MAX_PROTOCOLS = 16;

/** The bearer token of the Authorization header or of the subprotocol `base64UrlBearerAuthorization.{b64url}`. Throws ValidationException. */
export function readCredentials(req: IncomingMessage): StreamCredentials {
  const offered = (req.headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (offered.length > MAX_PROTOCOLS) throw errors.validation('The request offers too many subprotocols.');
  const carrier = offered.find((name) => name.startsWith(`${BEARER_PROTOCOL}.`));
  const protocols = offered.filter((name) => name !== BEARER_PROTOCOL && !name.startsWith(`${BEARER_PROTOCOL}.`));
  const answeredProtocol = offered.includes(BEARER_PROTOCOL) ? BEARER_PROTOCOL : undefined;
  const header = req.headers.authorization;
  const inHeader = header !== undefined && /^bearer /i.test(header) ? header.slice(7).trim() : undefined;
  const inProtocol =
    carrier === undefined
      ? undefined
      : Buffer.from(carrier.slice(BEARER_PROTOCOL.length + 1), 'base64url').toString('latin1');
  if (header !== undefined && inProtocol !== undefined)
    throw errors.validation('The request carries credentials both in its Authorization header and in a subprotocol.');
  return { bearer: inHeader ?? inProtocol, protocols, answeredProtocol };
}
