/** Headers of one connection, which say nothing about the next (RFC 9110, 7.6.1), lower-case. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
]);

/** Lower-case names that a `Connection` header adds to these. */
export function connectionOptions(value: string | string[] | undefined): ReadonlySet<string> {
  return new Set(
    String(value ?? '')
      .split(',')
      .map((name) => name.trim().toLowerCase()),
  );
}
