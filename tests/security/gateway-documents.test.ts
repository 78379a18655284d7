import { readFile, writeFile } from 'node:fs/promises';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { settledTarget } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const MIB = 2 ** 20;
/** What a refused document of 100 MB may add to the most that the server had in memory, in bytes. */
const GROWTH = 64 * MIB;
const BUCKET = 'documents';

let platform: TestPlatform;
let clients: Clients;
let gatewayIdentifier: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
  const { defaultRoleArn: roleArn } = platform.ready;
  const made = await clients.control.send(new CreateGatewayCommand({ name: 'g', roleArn, authorizerType: 'AWS_IAM' }));
  gatewayIdentifier = made.gatewayId ?? '';
  await clients.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const FORMS = {
  json: (filler: string): string =>
    `{"openapi":"3.0.3","info":{"title":"t","version":"1","description":"${filler}"},"servers":[{"url":"https://x.example"}],"paths":{"/a":{"get":{"operationId":"a"}}}}`,
  yaml: (filler: string): string =>
    `openapi: 3.0.3\ninfo: {title: t, version: "1", description: "${filler}"}\nservers: [{url: "https://x.example"}]\npaths: {/a: {get: {operationId: a}}}\n`,
};
type Form = keyof typeof FORMS;

/** A good document of that many megabytes. */
const documentOf = (form: Form, megabytes: number): string => FORMS[form]('x'.repeat(megabytes * 1_000_000));

async function memory(name: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${platform.pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1024;
}

/** What that work came to, and how far above what the server had before it went meanwhile, in bytes. */
async function growthOf<T>(work: () => Promise<T>): Promise<{ came: T; growth: number }> {
  // Linux counts the peak anew from here (proc(5), clear_refs).
  await writeFile(`/proc/${platform.pid}/clear_refs`, '5');
  const before = await memory('VmRSS');
  const came = await work();
  return { came, growth: (await memory('VmHWM')) - before };
}

type Schema = { inlinePayload: string } | { s3: { uri: string } };

let named = 0;
/** The status of the target that is made of a document, or what it is refused with. */
async function outcomeOf(openApiSchema: Schema): Promise<{ status?: string; name?: string; message: string }> {
  const targetConfiguration = { mcp: { openApiSchema } };
  const command = new CreateGatewayTargetCommand({ gatewayIdentifier, name: `t${++named}`, targetConfiguration });
  try {
    const { targetId = '' } = await clients.control.send(command);
    const { status = '', statusReasons = [] } = await settledTarget(clients, gatewayIdentifier, targetId);
    return { status, message: statusReasons.join(' ') };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { name: error.name, message: error.message };
  }
}

async function kept(form: Form, megabytes: number): Promise<Schema> {
  const key = `${megabytes}.${form}`;
  await clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: documentOf(form, megabytes) }));
  return { s3: { uri: `s3://${BUCKET}/${key}` } };
}

describe.each(Object.keys(FORMS) as Form[])('a document of 100 MB in %s', (form) => {
  it('in a bucket is refused before it is read', async () => {
    const schema = await kept(form, 100);
    const { came, growth } = await growthOf(() => outcomeOf(schema));
    expect(came).toMatchObject({ name: 'ValidationException', message: expect.stringContaining('is larger than') });
    expect(growth).toBeLessThan(GROWTH);
  });

  it('in the call is refused before it is read', async () => {
    const inlinePayload = documentOf(form, 100);
    const { came, growth } = await growthOf(() => outcomeOf({ inlinePayload }));
    expect(came.status).toBeUndefined();
    expect(came.message).toMatch(/larger|longer|limit|at most/);
    expect(growth).toBeLessThan(GROWTH);
  });

  it('the control: one of 12 MB in a bucket is served, and its memory is seen', async () => {
    const schema = await kept(form, 12);
    const { came, growth } = await growthOf(() => outcomeOf(schema));
    expect(came).toMatchObject({ status: 'READY' });
    expect(growth).toBeGreaterThan(12_000_000);
  });
});
