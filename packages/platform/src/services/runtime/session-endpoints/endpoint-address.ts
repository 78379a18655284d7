import { errors } from '@agentplatform/contract';

/** Below this path are the sessions; no bucket can be called so, whose requests come to the same server. */
export const SESSION_ENDPOINTS = '/_sessions';

/** What the address of a session says: which sandbox it lives in, and by which endpoint of its runtime it is used. */
export interface EndpointAddress {
  sandboxId: string;
  qualifier: string;
}

/** A request to one: the port inside the session, and what its server is asked, path and query. */
export interface EndpointRequest extends EndpointAddress {
  port: number;
  target: string;
}

const REQUEST = /^\/_sessions\/(s-[a-z0-9]{16})\.([a-zA-Z]\w{0,47})\/(\d{1,5})(\/[^?]*)?(\?.*)?$/;

/** What comes before the port in a request to the session; `origin` is where its caller reaches the platform. */
export function endpointUrl(origin: string, { sandboxId, qualifier }: EndpointAddress): string {
  return `${origin}${SESSION_ENDPOINTS}/${sandboxId}.${qualifier}`;
}

/** Whether a request line is for a session. */
export function isForSession(url: string): boolean {
  return url.startsWith(`${SESSION_ENDPOINTS}/`);
}

/** Reads a request line that `isForSession`. Throws ResourceNotFoundException. */
export function readEndpointRequest(url: string): EndpointRequest {
  const [match, sandboxId = '', qualifier = '', port = '', path = '/', query = ''] = REQUEST.exec(url) ?? [];
  if (match === undefined)
    throw errors.resourceNotFound('There is no session at this address.', {
      remedy: 'Append the port and the path to the sessionEndpointUrl of InvokeAgentRuntime: URL/PORT/PATH.',
    });
  return { sandboxId, qualifier, port: Number(port), target: `${path}${query}` };
}

/** The query parameters of a presigned URL. */
const OF_SIGNATURE =
  /^x-amz-(?:algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256)$/i;

/** Path and query without the signature of a presigned URL, the rest as it was: whoever has it could send the request again. */
export function withoutSignature(target: string): string {
  const at = target.indexOf('?');
  if (at < 0) return target;
  const kept = target
    .slice(at + 1)
    .split('&')
    .filter((part) => !OF_SIGNATURE.test(nameOf(part)));
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join('&')}`;
}

function nameOf(part: string): string {
  const [name = ''] = part.split('=', 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
