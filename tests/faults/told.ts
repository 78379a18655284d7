import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';

/** Another server is told in milliseconds, on a machine that has time; a server that nobody tells anything answers nobody before this is over. */
const TOLD_WITHIN_MS = 60_000;

/** What a call ends with: nothing, or the name of its error. */
export const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'done',
    (error: Error) => error.name,
  );

/** Resolves when the call ends so. */
export async function becomes(call: () => Promise<unknown>, expected: unknown): Promise<void> {
  const since = performance.now();
  for (;;) {
    const began = performance.now();
    const ended = await call();
    if (ended === expected) return;
    if (began - since > TOLD_WITHIN_MS) expect(ended).toBe(expected);
    await sleep(25);
  }
}

const HARNESSES = 'harnesses, their versions and endpoints; of a deleted one no session is left';

/**
 * Whoever keeps something in memory that another server may change: its file and what the feed calls it, and the test in which two servers
 * show that it is told. A test fails for one that subscribes to a topic and does not stand here.
 */
export const TOLD: Readonly<Record<string, string>> = {
  'kernel/auth/iam/iam.ts: iam_revision': 'policies and access keys of users, and users',
  'services/browser/index.ts: browser':
    'browsers deleted through one server are gone on the other, with their sessions',
  'services/code-interpreter/index.ts: code-interpreter':
    'code interpreters deleted through one server are gone on the other, with their sessions',
  'services/functions/index.ts: function': 'functions; no sandbox with the code of before is left for the next event',
  'services/gateway/gateway-tools.ts: gateway': 'gateways, their targets, and who may call them',
  'services/gateway/gateway-tools.ts: gateway-guard-rails': 'guard rails and rate limits of gateways',
  'services/gateway/gateway-tools.ts: gateway-rate-limit': 'guard rails and rate limits of gateways',
  'services/gateway/gateway-tools.ts: gateway-rule': 'gateways, their targets and the rules of their traffic',
  'services/gateway/gateway-tools.ts: gateway-target': 'gateways, their targets, and who may call them',
  'services/gateway/mcp/mcp-servers.ts: gateway': 'clients that listen for the tools of a gateway',
  'services/gateway/mcp/mcp-servers.ts: gateway-target': 'clients that listen for the tools of a gateway',
  'services/gateway/outbound/target-guard.ts: gateway-target': 'whether the server behind a target is left alone',
  'services/gateway/targets/mcp-server/backend-connections.ts: gateway-target':
    'sessions with the servers behind targets',
  'services/harness/harnesses/harness-store.ts: harness': HARNESSES,
  'services/harness/harnesses/harness-store.ts: harness-endpoint': HARNESSES,
  'services/harness/harnesses/harness-store.ts: harness-version': HARNESSES,
  'services/harness/index.ts: harness': HARNESSES,
  'services/harness/index.ts: harness-endpoint': HARNESSES,
  'services/harness/index.ts: harness-version': HARNESSES,
  'services/identity/flows/stored-tokens.ts: identity_tokens': 'tokens of agents and users',
  'services/identity/index.ts: workload-identity': 'workload identities',
  'services/identity/providers/credential-providers.ts: api-key-credential-provider':
    'credential providers of each kind',
  'services/identity/providers/credential-providers.ts: oauth2-credential-provider':
    'credential providers of each kind',
  'services/identity/providers/credential-providers.ts: payment-credential-provider':
    'credential providers of each kind',
  'services/identity/vault/token-vaults.ts: token-vault': 'token vaults, and the keys that they are under',
  'services/memory/memories.ts: memory': 'memories',
  'services/policy/decisions/policy-sets.ts: policy':
    'denies what no policy permits, and nothing leaves it; a change counts from the next call on, and on another server once it has heard',
  'services/policy/decisions/policy-sets.ts: policy-engine':
    'denies what no policy permits, and nothing leaves it; a change counts from the next call on, and on another server once it has heard',
  'services/resource-policies/policy-store.ts: resource_policies':
    'resource policies; the one that was asked heeds them from its answer on',
  'services/runtime/catalogue.ts: agent-runtime':
    'runtimes, their versions, endpoints, authorizers and workload identities',
  'services/runtime/catalogue.ts: agent-runtime-endpoint':
    'runtimes, their versions, endpoints, authorizers and workload identities',
  'services/runtime/catalogue.ts: agent-runtime-version':
    'runtimes, their versions, endpoints, authorizers and workload identities',
  'services/runtime/catalogue.ts: workload-identity':
    'runtimes, their versions, endpoints, authorizers and workload identities',
  'services/runtime/index.ts: secret':
    'a secret that was set at one server is that of sessions of the other, from the answer on',
  'services/secrets/keys.ts: kms-key': 'token vaults, and the keys that they are under',
};
