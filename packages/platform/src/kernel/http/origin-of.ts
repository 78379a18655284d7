import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** Where a caller reached the platform, such as `http://127.0.0.1:8080`, as his own request says. */
export function originOf({
  headers,
  socket,
}: {
  headers: IncomingHttpHeaders;
  socket: IncomingMessage['socket'] | null;
}): string {
  const { host = '', 'x-forwarded-proto': forwarded } = headers;
  const secure = forwarded === 'https' || (socket !== null && 'encrypted' in socket && socket.encrypted === true);
  return `${secure ? 'https' : 'http'}://${host}`;
}
