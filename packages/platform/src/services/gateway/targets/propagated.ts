import type { control } from '@agentplatform/contract';
import type { ToolCaller } from './target-kind.ts';

/** Headers that no list passes on: they are the platform's, the connection's or a credential's. */
const NEVER =
  /^(?:authorization|proxy-.*|cookie|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-length|content-type|content-encoding|accept-encoding|x-amz.*|x-amzn.*|amz-sdk-.*|mcp-.*|x-agentplatform-.*)$/;

/** The first of these headers that no list can pass on; undefined when there is none. */
export function unpassable({ allowedRequestHeaders = [] }: control.MetadataConfiguration = {}): string | undefined {
  return allowedRequestHeaders.find((name) => NEVER.test(name.toLowerCase()));
}

/** What of the caller's request goes on to a target, as its lists name it. */
export function propagated(
  { allowedRequestHeaders = [], allowedQueryParameters = [] }: control.MetadataConfiguration = {},
  { headers, query }: ToolCaller,
): { headers: Record<string, string>; query: [string, string][] } {
  const passed: Record<string, string> = {};
  for (const name of allowedRequestHeaders.map((one) => one.toLowerCase())) {
    const value = NEVER.test(name) ? undefined : headers[name];
    if (value !== undefined) passed[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    headers: passed,
    query: allowedQueryParameters.flatMap((name) => query.getAll(name).map((value): [string, string] => [name, value])),
  };
}
