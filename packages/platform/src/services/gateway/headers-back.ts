import { HOP_BY_HOP } from '../../kernel/hop-by-hop.ts';

/** Headers that make a client store something for the whole address, send a request or go elsewhere, and headers that the gateway sets itself. */
const NEVER_BACK = new Set([
  ...['set-cookie', 'set-cookie2', 'set-login', 'clear-site-data', 'www-authenticate', 'cache-control'],
  ...['location', 'refresh', 'alt-svc', 'strict-transport-security', 'public-key-pins', 'public-key-pins-report-only'],
  ...['expect-ct', 'nel', 'report-to', 'reporting-endpoints', 'accept-ch', 'accept-ch-lifetime', 'critical-ch'],
  ...['service-worker-allowed', 'origin-agent-cluster', 'origin-trial', 'speculation-rules'],
]);
const NEVER_BACK_FAMILY = /^(?:proxy-|content-|access-control-|cross-origin-|x-amz-|x-amzn-|mcp-|x-agentplatform-)/;

/** Whether a header in the answer of a target or an interceptor goes to the client. `name` is in lower case. */
export function goesBack(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !NEVER_BACK.has(name) && !NEVER_BACK_FAMILY.test(name);
}
