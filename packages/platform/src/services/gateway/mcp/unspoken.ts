import { PROTOCOL_VERSION_META_KEY, UnsupportedProtocolVersionError } from '@modelcontextprotocol/server';
import { MCP_VERSIONS } from '../gateways/gateway.ts';
import { isObject } from '../tools/json-pointer.ts';
import { errorMessage } from './refusal.ts';

/** The refusal of a message in a version since 2026-07-28 that the gateway leaves out: the protocol's package would answer it. A version that nobody knows it refuses itself. */
export function unspoken(body: unknown, spoken: readonly string[]): Response | undefined {
  if (!isObject(body) || !isObject(body.params) || !isObject(body.params._meta)) return undefined;
  const requested = body.params._meta[PROTOCOL_VERSION_META_KEY];
  const known = MCP_VERSIONS.some((version) => version === requested);
  if (typeof requested !== 'string' || !known || spoken.includes(requested)) return undefined;
  const { code, message } = new UnsupportedProtocolVersionError({ supported: [...spoken], requested });
  return Response.json(errorMessage({ code, message, data: { supported: [...spoken], requested } }, body), {
    status: 400,
  });
}
