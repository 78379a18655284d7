import type { IncomingMessage } from 'node:http';

/** Whether a request says that it is signed for this service of AWS, in its header or its query. Nothing of it is verified. */
export function isSignedFor(service: string, { headers, url }: Pick<IncomingMessage, 'headers' | 'url'>): boolean {
  const { authorization } = headers;
  if (authorization !== undefined) return authorization.includes(`/${service}/aws4_request`);
  return url?.includes(`%2F${service}%2Faws4_request`) ?? false;
}
