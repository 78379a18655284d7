import type { Config } from './config.ts';
import type { NetworkPolicy } from './kernel/sandbox/index.ts';
import { subnetMap } from './services/code-interpreter/index.ts';

/** What a sandbox may reach unless its resource says otherwise. */
function network({ sandbox }: Pick<Config, 'sandbox'>): NetworkPolicy {
  return { egress: sandbox.egress, allowCidrs: sandbox.allowPrivateEgress, hostPorts: [] };
}

/** The settings of agent runtimes; times in milliseconds. */
export function runtimeSettings(config: Config) {
  return {
    region: config.region,
    defaults: config.session,
    quotas: config.quotas,
    pooled: config.pool.maxPerVersion,
    sandbox: { limits: config.sandbox.limits, network: network(config) },
    limits: {
      timeoutMs: config.invocation.timeoutSeconds * 1000,
      streamTimeoutMs: config.invocation.streamTimeoutSeconds * 1000,
      eventBytes: config.invocation.maxEventBytes,
    },
  };
}

/** The settings of code interpreters. */
export function codeInterpreterSettings(config: Config) {
  const { builtInNetwork, subnets = '', image, warmSessions, executionSeconds } = config.codeInterpreter;
  return {
    region: config.region,
    limits: config.sandbox.limits,
    networks: { builtIn: builtInNetwork, public: network(config), subnets: subnetMap(subnets) },
    dataDir: config.data,
    image,
    warmSessions,
    executionSeconds,
  };
}
