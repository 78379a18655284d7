import { createHash } from 'node:crypto';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AgentManagedRuntimeType,
  CreateAgentRuntimeCommand,
  type CreateAgentRuntimeCommandInput,
  GetAgentRuntimeCommand,
  type GetAgentRuntimeCommandOutput,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { ZipFile } from 'yazl';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import type { Clients } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

const BUCKET = 'test-code';

/** Zips a folder and puts it where `codeConfiguration` can name it. */
export async function uploadFolder({ s3 }: Clients, folder: string): Promise<{ bucket: string; prefix: string }> {
  const zip = new ZipFile();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    zip.addFile(path, path.slice(folder.length + 1), { mtime: new Date(Date.UTC(2020, 0, 1)) });
  }
  zip.end();
  const body = await buffer(zip.outputStream);
  const prefix = `${createHash('sha256').update(body).digest('hex')}.zip`;
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET })).catch(() => undefined);
  await s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: prefix, Body: body }));
  return { bucket: BUCKET, prefix };
}

export interface AgentOptions extends Partial<CreateAgentRuntimeCommandInput> {
  folder: string;
  runtime?: AgentManagedRuntimeType;
  entryPoint?: string[];
  /** Members that the AWS SDK for JavaScript does not have yet. */
  newer?: object;
}

/** Deploys a folder of code as an agent runtime and waits until it can be invoked. */
export async function deployAgent(
  platform: TestPlatform,
  clients: Clients,
  options: AgentOptions,
): Promise<GetAgentRuntimeCommandOutput & { arn: string; id: string }> {
  const { folder, runtime = 'NODE_22', entryPoint = ['index.mjs'], newer = {}, ...rest } = options;
  const create = new CreateAgentRuntimeCommand({
    agentRuntimeName: `agent_${Math.random().toString(36).slice(2, 10)}`,
    roleArn: platform.ready.defaultRoleArn,
    networkConfiguration: { networkMode: 'PUBLIC' },
    agentRuntimeArtifact: {
      codeConfiguration: { code: { s3: await uploadFolder(clients, folder) }, runtime, entryPoint },
    },
    ...rest,
  });
  create.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as { body: string | Uint8Array };
      request.body = JSON.stringify({ ...JSON.parse(Buffer.from(request.body).toString()), ...newer });
      return next(args);
    },
    { step: 'build', priority: 'high' },
  );
  const created = await clients.control.send(create);
  return untilReady(clients, created.agentRuntimeId ?? '');
}

export interface PythonAgentOptions extends Partial<CreateAgentRuntimeCommandInput> {
  agent: string;
  packages: string;
}

/** Deploys `main.py` of a folder together with installed packages, for the Python of this machine. */
export async function deployPythonAgent(
  platform: TestPlatform,
  clients: Clients,
  { agent, packages, ...rest }: PythonAgentOptions,
): Promise<GetAgentRuntimeCommandOutput & { arn: string; id: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'python-agent-'));
  try {
    await cp(packages, folder, { recursive: true, filter: (path) => !path.endsWith('__pycache__') });
    await cp(join(agent, 'main.py'), join(folder, 'main.py'));
    const runtime = (await defaultPythonRuntime(folder)) as 'PYTHON_3_11';
    return await deployAgent(platform, clients, { folder, runtime, entryPoint: ['main.py'], ...rest });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Waits, at most two minutes, until a runtime is READY; rejects with its failure. */
export async function untilReady(
  { control }: Clients,
  id: string,
): Promise<GetAgentRuntimeCommandOutput & { arn: string; id: string }> {
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(100)) {
    const runtime = await control.send(new GetAgentRuntimeCommand({ agentRuntimeId: id }));
    if (runtime.status === 'READY') return { ...runtime, arn: runtime.agentRuntimeArn ?? '', id };
    if (runtime.status?.endsWith('FAILED')) throw new Error(`${id}: ${runtime.failureReason}`);
  }
  throw new Error(`${id} is not READY after two minutes`);
}
