import { HOP_BY_HOP } from '../../kernel/hop-by-hop.ts';

/** What a client keeps for the whole platform, asks for or follows because an answer says so, and what is the gateway's to say. */
const NEVER_BACK = new Set([
  ...['set-cookie', 'set-cookie2', 'set-login', 'clear-site-data', 'www-authenticate', 'cache-control'],
  ...['location', 'refresh', 'alt-svc', 'strict-transport-security', 'public-key-pins', 'public-key-pins-report-only'],
  ...['expect-ct', 'nel', 'report-to', 'reporting-endpoints', 'accept-ch', 'accept-ch-lifetime', 'critical-ch'],
  ...['service-worker-allowed', 'origin-agent-cluster', 'origin-trial', 'speculation-rules'],
]);
const NEVER_BACK_FAMILY = /^(?:proxy-|content-|access-control-|cross-origin-|x-amz-|x-amzn-|mcp-|x-agentplatform-)/;

/** Whether that header, its name in small letters, goes back to a client where a target or an interceptor answers with it. */
export function goesBack(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !NEVER_BACK.has(name) && !NEVER_BACK_FAMILY.test(name);
}
