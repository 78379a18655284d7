import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvokeAgentRuntimeCommand, StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { journalSettled, untilMetric } from '../support/metrics.ts';
import { type SignedRequest, signedRequest } from '../support/signed-requests.ts';

/** A live session of the fixed agent, as the platform's own route shows it. */
export interface LiveSession {
  sessionId: string;
  sandboxId: string;
  address: { host: string; port: number };
}

/** The real platform on data of its own, with the fixed agent deployed. */
export interface BenchPlatform {
  platform: TestPlatform;
  arn: string;
  runtimeId: string;
  endpoint: URL;
  /** The path of `InvokeAgentRuntime` for the agent. */
  path: string;
  /** Starts a session, or finds it. */
  session(sessionId: string): Promise<LiveSession>;
  /** All that are live. */
  sessions(): Promise<LiveSession[]>;
  stop(sessionId: string): Promise<void>;
  /** Resolves when a sandbox stands ready. */
  pooled(): Promise<void>;
  /** Resolves when no work of earlier requests is left, so that it does not slow down whoever is measured next. */
  settled(): Promise<void>;
  /** An invocation signed as of `at`. */
  invocation(sessionId: string, body: string, at?: Date): Promise<SignedRequest>;
  close(): Promise<void>;
}

const AGENT = resolve(import.meta.dirname, 'agent');
/** The benchmark offers more than the default quota lets through. */
const SERVER = ['--quotas-invocations-per-second', '0', '--log-level', 'warn'];
/** Nothing stands ready: a new session is a cold start, and nothing is made behind the back of what is measured. */
export const ARGS = [...SERVER, '--pool-max-per-version', '0'];
export const POOLED = [...SERVER, '--pool-max-per-version', '2'];

export const newDirectory = (): Promise<string> => mkdtemp(join(tmpdir(), 'agentplatform-bench-'));

export async function startBenchPlatform(dataDir: string): Promise<BenchPlatform> {
  const platform = await startTestPlatform({ dataDir, args: ARGS });
  const clients = clientsOf(platform);
  try {
    const { arn, id } = await deployAgent(platform, clients, { folder: AGENT });
    return benchPlatform(platform, clients, arn, id);
  } catch (error) {
    clients.close();
    await platform.dispose();
    throw error;
  }
}

/** The same on data of an earlier run, with the agent that was deployed there. */
export async function reopenBenchPlatform(
  { platform: { dataDir }, arn, runtimeId }: BenchPlatform,
  args: string[],
): Promise<BenchPlatform> {
  const platform = await startTestPlatform({ dataDir, args });
  return benchPlatform(platform, clientsOf(platform), arn, runtimeId);
}

function benchPlatform(platform: TestPlatform, clients: Clients, arn: string, id: string): BenchPlatform {
  const endpoint = new URL(platform.ready.endpoint);
  const { region } = platform.ready;
  const common = { endpoint, region, credentials: platform.credentials };
  const path = `/runtimes/${encodeURIComponent(arn)}/invocations`;
  const listed = async (): Promise<LiveSession[]> => {
    const request = {
      ...common,
      method: 'GET',
      path: `/_platform/runtimes/${id}/sessions`,
      headers: {},
      body: '',
    } as const;
    const { headers } = await signedRequest(request);
    const answer = await fetch(new URL(request.path, endpoint), { headers });
    return ((await answer.json()) as { sessions: LiveSession[] }).sessions;
  };
  return {
    platform,
    arn,
    runtimeId: id,
    endpoint,
    path,
    async session(sessionId) {
      const answer = await clients.data.send(
        new InvokeAgentRuntimeCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId, payload: Buffer.from('x') }),
      );
      await answer.response?.transformToByteArray();
      const sessions = await listed();
      const found = sessions.find((session) => session.sessionId === sessionId);
      if (!found) throw new Error(`the session ${sessionId} is not listed`);
      return found;
    },
    sessions: listed,
    pooled: () => untilMetric(endpoint, /^agentplatform_pooled_sandboxes [1-9]/m, 'no sandbox stands ready'),
    settled: () => journalSettled(endpoint),
    stop: async (sessionId) => {
      await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId }));
    },
    invocation: (sessionId, body, at) =>
      signedRequest(
        {
          ...common,
          path,
          headers: {
            'content-type': 'application/octet-stream',
            'x-amzn-bedrock-agentcore-runtime-session-id': sessionId,
          },
          body,
        },
        at,
      ),
    async close() {
      clients.close();
      await platform.end();
      await rm(platform.dataDir, { recursive: true, force: true });
    },
  };
}
