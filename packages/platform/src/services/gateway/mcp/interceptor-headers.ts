import type { DocumentValue } from '@agentplatform/contract';
import { HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { goesBack } from '../headers-back.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { isObject } from '../tools/json-pointer.ts';

/** Headers between servers of the platform. Nobody else gets them. */
const OF_PLATFORM = /^x-agentplatform-/;
/** A header as RFC 9110 has it. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;
/** Headers that the gateway sets in each message. */
const OWN = new Set(['content-length', 'content-type', 'mcp-session-id', 'cache-control', 'x-amzn-requestid']);

/** The headers of a request for an interceptor, with names as in the guide of AgentCore. */
export function interceptorHeaders(headers: ToolCaller['headers']): Record<string, string> {
  const seen: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || OF_PLATFORM.test(name)) continue;
    const shown = name.replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase());
    seen[shown] = Array.isArray(value) ? value.join(', ') : value;
  }
  return seen;
}

/** The headers that a function adds to a request, with names in lower case. Leaves out invalid headers and those that the gateway sets. */
export function requestHeaders(given: DocumentValue | undefined): Record<string, string> {
  return headersOf(given, (name) => !OWN.has(name) && !HOP_BY_HOP.has(name) && !OF_PLATFORM.test(name));
}

/** The headers that a function adds to an answer. Also leaves out those that may not go to a client. */
export function answerHeaders(given: DocumentValue | undefined): Record<string, string> {
  return headersOf(given, goesBack);
}

function headersOf(given: DocumentValue | undefined, passes: (name: string) => boolean): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [given_, value] of Object.entries(isObject(given) ? given : {})) {
    const name = given_.toLowerCase();
    if (typeof value === 'string' && NAME.test(name) && VALUE.test(value) && passes(name)) passed[name] = value;
  }
  return passed;
}
