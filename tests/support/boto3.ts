import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clients } from './clients.ts';
import { uploadFolder } from './deploy.ts';
import type { TestPlatform } from './platform-process.ts';
import { testPython } from './python.ts';

const script = join(import.meta.dirname, 'boto3_calls.py');

/** What boto3 made of an answer: bytes as `{$bytes}`, dates as `{$date}`. */
export interface BotoAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: what an operation answers is as various as the operations.
  output?: any;
  error?: { code: string; message: string; fields: string[] };
}

/** Unmodified boto3 that calls a platform: the client for fields that the AWS SDK for JavaScript does not have yet. */
export interface Boto {
  /** Calls of the data plane (`bedrock-agentcore`), one after the other. */
  data(...calls: [operation: string, input: object][]): Promise<BotoAnswer[]>;
  /** The same of the control plane. */
  control(...calls: [operation: string, input: object][]): Promise<BotoAnswer[]>;
  /** The same of functions (`lambda`). */
  functions(...calls: [operation: string, input: object][]): Promise<BotoAnswer[]>;
  /** The same of the audit trail (`cloudtrail`). */
  trail(...calls: [operation: string, input: object][]): Promise<BotoAnswer[]>;
}

export const python = await testPython();

/** With the platform's root key, or those of `env`. */
export function botoOf(platform: TestPlatform, env: Record<string, string> = {}): Boto {
  const call = (service: string) => async (calls: [string, object][]) => {
    const input = calls.map(([operation, members]) => ({ service, operation, input: members }));
    return (await python?.run(script, input, { ...platform.env, ...env })) as BotoAnswer[];
  };
  const [data, control] = [call('bedrock-agentcore'), call('bedrock-agentcore-control')];
  const [functions, trail] = [call('lambda'), call('cloudtrail')];
  return {
    data: (...calls) => data(calls),
    control: (...calls) => control(calls),
    functions: (...calls) => functions(calls),
    trail: (...calls) => trail(calls),
  };
}

/** The members of `CreateAgentRuntime` that deploy a folder of Node code. */
export async function codeDefinition(platform: TestPlatform, clients: Clients, folder: string): Promise<object> {
  const code = { s3: await uploadFolder(clients, folder) };
  return {
    roleArn: platform.ready.defaultRoleArn,
    networkConfiguration: { networkMode: 'PUBLIC' },
    agentRuntimeArtifact: { codeConfiguration: { code, runtime: 'NODE_22', entryPoint: ['index.mjs'] } },
  };
}

/** GetAgentRuntime once the runtime is READY; rejects with its failure, or after two minutes. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
export async function readyRuntime(boto: Boto, created: BotoAnswer | undefined): Promise<any> {
  assert.ok(created?.output, JSON.stringify(created?.error));
  const { agentRuntimeId } = created.output;
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(100)) {
    const [found] = await boto.control(['GetAgentRuntime', { agentRuntimeId }]);
    assert.ok(found?.output, JSON.stringify(found?.error));
    if (found.output.status === 'READY') return found.output;
    assert.ok(!found.output.status.endsWith('FAILED'), found.output.failureReason);
  }
  throw new Error(`${agentRuntimeId} is not READY after two minutes`);
}

/** The text that a blob of an answer holds. */
export function textOf(blob: { $bytes: string }): string {
  return Buffer.from(blob.$bytes, 'base64').toString();
}
