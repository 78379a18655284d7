import type { control } from '@agentplatform/contract';
import { connectionOptions, HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { goesBack } from '../headers-back.ts';
import type { Mask } from '../http-tools/index.ts';
import type { ToolCaller } from './target-kind.ts';

/** The platform's, a credential's, and what says how a body is written. */
const OWN =
  /^(?:authorization|proxy-.*|cookie|host|content-length|content-type|content-encoding|accept-encoding|x-amz.*|amz-sdk-.*|mcp-.*|x-agentplatform-.*|workloadaccesstoken)$/;

/** Whether no list passes that header on, its name in small letters. */
function isNever(name: string): boolean {
  return OWN.test(name) || HOP_BY_HOP.has(name);
}

/** Parameters of a presigned URL's signature: a holder of them could send the request again. */
const OF_SIGNATURE = /^x-amz-/i;

/** The first name in these lists that none can pass on, with the list; undefined when there is none. */
export function unpassable({
  allowedRequestHeaders = [],
  allowedQueryParameters = [],
  allowedResponseHeaders = [],
}: control.MetadataConfiguration = {}): { list: keyof control.MetadataConfiguration; name: string } | undefined {
  const header = allowedRequestHeaders.find((name) => isNever(name.toLowerCase()));
  if (header !== undefined) return { list: 'allowedRequestHeaders', name: header };
  const parameter = allowedQueryParameters.find((name) => OF_SIGNATURE.test(name));
  if (parameter !== undefined) return { list: 'allowedQueryParameters', name: parameter };
  const back = allowedResponseHeaders.find((name) => !goesBack(name.toLowerCase()));
  return back === undefined ? undefined : { list: 'allowedResponseHeaders', name: back };
}

/** What of the headers of a target's answer goes back to the caller, as its list names it, without what a credential is part of. */
export function passedBack(
  { allowedResponseHeaders = [] }: control.MetadataConfiguration = {},
  headers: Readonly<Record<string, string | string[] | undefined>>,
  mask: Pick<Mask, 'text'>,
): Record<string, string> {
  const passed: Record<string, string> = {};
  const options = connectionOptions(headers.connection);
  for (const name of allowedResponseHeaders.map((one) => one.toLowerCase())) {
    const value = goesBack(name) && !options.has(name) ? headers[name] : undefined;
    if (value !== undefined) passed[name] = mask.text(Array.isArray(value) ? value.join(', ') : value);
  }
  return passed;
}

/** What of the caller's request goes on to a target, as its lists name it. Headers of the caller's connection are not among it. */
export function propagated(
  { allowedRequestHeaders = [], allowedQueryParameters = [] }: control.MetadataConfiguration = {},
  { headers, query }: ToolCaller,
): { headers: Record<string, string>; query: [string, string][] } {
  const passed: Record<string, string> = {};
  const options = connectionOptions(headers.connection);
  for (const name of allowedRequestHeaders.map((one) => one.toLowerCase())) {
    const value = isNever(name) || options.has(name) ? undefined : headers[name];
    if (value !== undefined) passed[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return {
    headers: passed,
    query: allowedQueryParameters
      .filter((name) => !OF_SIGNATURE.test(name))
      .flatMap((name) => query.getAll(name).map((value): [string, string] => [name, value])),
  };
}
