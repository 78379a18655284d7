import { describe, expect, it } from 'vitest';
import type { SandboxImage } from '../../kernel/sandbox/index.ts';
import { Secret } from '../../kernel/secrets/index.ts';
import { FileSystems } from './file-systems.ts';
import type { RuntimeVersion } from './runtime.ts';
import { type SessionPlanDeps, sessionPlan } from './session-plan.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const accessPoint = 'fsap-00000001';
const accessPointArn = `arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/${accessPoint}`;
const version: RuntimeVersion = {
  runtimeArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789',
  version: 3,
  status: 'READY',
  failureReason: undefined,
  createdAt: 0,
  updatedAt: 0,
  imageDigest: digest,
  lifecycle: { idleSeconds: 900, maxLifetimeSeconds: 28_800 },
  protocol: 'HTTP',
  definition: {
    agentRuntimeArtifact: { containerConfiguration: { containerUri: 'registry.test/agent:1' } },
    roleArn: 'arn:aws:iam::123456789012:role/any',
    networkConfiguration: { networkMode: 'PUBLIC' },
    filesystemConfigurations: [
      { sessionStorage: { mountPath: '/mnt/own/' } },
      { efsAccessPoint: { accessPointArn, mountPath: '/mnt/all' } },
    ],
  },
};

/** Secrets that a test may change. */
let kept: Record<string, string> = {};
const secrets: SessionPlanDeps['secrets'] = {
  give: async (names) => ({
    values: new Map(names.flatMap((name) => (name in kept ? [[name, new Secret(kept[name] ?? '')]] : []))),
    missing: names.filter((name) => !(name in kept)),
    revision: JSON.stringify(kept).length.toString(),
  }),
  revision: async () => JSON.stringify(kept).length.toString(),
};

function plan(may: readonly string[], provider: SessionPlanDeps['provider'], environmentVariables = {}) {
  const fileSystems = new FileSystems({
    unavailable: undefined,
    storage: {
      holds: async () => false,
      attach: async () => undefined,
      detach: async () => undefined,
      diskBytes: async () => 0,
      forget: async () => 0,
    },
    places: { find: () => accessPoint, ids: () => [accessPoint], unavailable: () => undefined },
    roleMay: (_, action) => may.includes(action),
  });
  const definition = { ...version.definition, environmentVariables };
  return sessionPlan(
    { ...version, definition },
    {
      provider,
      secrets,
      egress: { resolve: async () => [{ address: '192.168.1.20' }], ownPorts: () => [] },
      fileSystems,
      limits: { cpu: 1, memoryBytes: 1, pids: 1, diskBytes: 1, openFiles: 1 },
      network: { egress: 'none', allowCidrs: [], hostPorts: [] },
      region: 'us-east-1',
      endpoint: () => undefined,
      roleEnvironment: () => ({}),
      roleFiles: () => ({ env: {}, files: [] }),
      hasCredentials: () => false,
      keepsSnapshots: async () => false,
      pooled: 0,
    },
  );
}

const never = new AbortController().signal;
const mount = 'elasticfilesystem:ClientMount';
const write = 'elasticfilesystem:ClientWrite';

describe('the sandbox of a session', () => {
  it('is specified by names alone, in plain data, its image staged before', async () => {
    const staged: SandboxImage[] = [];
    const spec = await plan([mount], { stage: async (image) => void staged.push(image) }).sandbox('s1', never);
    expect(staged).toEqual([{ digest }]);
    expect(spec.image).toEqual({ digest });
    expect(spec.volumes).toEqual([
      { kind: 'session-storage', target: '/mnt/own' },
      { kind: 'shared-place', accessPoint, target: '/mnt/all', readOnly: true },
    ]);
    expect(JSON.parse(JSON.stringify(spec))).toEqual(spec);
  });

  it('may write to a shared place only with a role that may, and is not made with one that may not mount it', async () => {
    const provider = { stage: async () => undefined };
    const { volumes } = await plan([mount, write], provider).sandbox('s1', never);
    expect(volumes[1]).toMatchObject({ readOnly: false });
    await expect(plan([write], provider).sandbox('s1', never)).rejects.toMatchObject({ code: 'AccessDeniedException' });
  });

  it('has its secrets apart from its environment, and is not what it would be once they have changed', async () => {
    const variables = { PLAIN: 'p', KEY: 'secretref:TEAM_KEY' };
    const made = plan([mount], { stage: async () => undefined }, variables);
    kept = {};
    await expect(made.sandbox('s1', never)).rejects.toMatchObject({
      name: 'StartFailure',
      message: expect.stringContaining('TEAM_KEY'),
    });
    kept = { TEAM_KEY: 'sk-1' };
    const spec = await made.sandbox('s1', never);
    expect(spec.secretEnv).toEqual({ KEY: 'sk-1' });
    expect(JSON.stringify({ ...spec, secretEnv: undefined })).not.toMatch(/sk-1|secretref/);
    expect(spec.env.PLAIN).toBe('p');
    expect(JSON.parse(JSON.stringify(spec))).toEqual(spec);
    expect(await made.pool?.current?.(spec)).toBe(true);
    kept = { TEAM_KEY: 'sk-22' };
    expect(await made.pool?.current?.(spec)).toBe(false);
    // One without secrets is always what it would be.
    expect(plan([mount], { stage: async () => undefined }).pool?.current).toBeUndefined();
  });

  it('reaches the services that its version names', async () => {
    const variables = { AGENTPLATFORM_ALLOW_EGRESS: 'localhost:11434,model.lan:80' };
    const { network } = await plan([mount], { stage: async () => undefined }, variables).sandbox('s1', never);
    expect(network).toMatchObject({
      hostPorts: [11_434],
      endpoints: [{ host: 'model.lan', addresses: ['192.168.1.20'], port: 80 }],
    });
  });
});
