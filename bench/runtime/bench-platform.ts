import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvokeAgentRuntimeCommand, StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
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
  endpoint: URL;
  /** The path of `InvokeAgentRuntime` for the agent. */
  path: string;
  /** Starts a session, or finds it. */
  session(sessionId: string): Promise<LiveSession>;
  stop(sessionId: string): Promise<void>;
  /** Resolves when no work of earlier requests is left, so that it does not slow down whoever is measured next. */
  settled(): Promise<void>;
  /** An invocation signed as of `at`. */
  invocation(sessionId: string, body: string, at?: Date): Promise<SignedRequest>;
  close(): Promise<void>;
}

const AGENT = resolve(import.meta.dirname, 'agent');
/** The benchmark offers more than the default quota lets through. */
export const ARGS = ['--quotas-invocations-per-second', '0', '--log-level', 'warn'];

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

function benchPlatform(platform: TestPlatform, clients: Clients, arn: string, id: string): BenchPlatform {
  const endpoint = new URL(platform.ready.endpoint);
  const { region } = platform.ready;
  const common = { endpoint, region, credentials: platform.credentials };
  const path = `/runtimes/${encodeURIComponent(arn)}/invocations`;
  return {
    platform,
    endpoint,
    path,
    async session(sessionId) {
      const answer = await clients.data.send(
        new InvokeAgentRuntimeCommand({ agentRuntimeArn: arn, runtimeSessionId: sessionId, payload: Buffer.from('x') }),
      );
      await answer.response?.transformToByteArray();
      const request = {
        ...common,
        method: 'GET',
        path: `/_platform/runtimes/${id}/sessions`,
        headers: {},
        body: '',
      } as const;
      const { headers } = await signedRequest(request);
      const listed = await fetch(new URL(request.path, endpoint), { headers });
      const { sessions } = (await listed.json()) as { sessions: LiveSession[] };
      const found = sessions.find((session) => session.sessionId === sessionId);
      if (!found) throw new Error(`the session ${sessionId} is not listed`);
      return found;
    },
    async settled() {
      for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(100)) {
        const metrics = await (await fetch(new URL('/metrics', endpoint))).text();
        if (/^agentplatform_journal_lag_records 0$/m.test(metrics)) return;
      }
      throw new Error('the journal of the platform is not empty after a minute');
    },
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
