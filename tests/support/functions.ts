import {
  CreateFunctionCommand,
  type CreateFunctionCommandInput,
  InvokeCommand,
  LambdaClient,
} from '@aws-sdk/client-lambda';
import { rawZip } from '../../packages/platform/src/kernel/images/testing/zip.ts';
import type { ClientOptions } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

/** The official client of functions, unmodified but for the endpoint. */
export function lambdaClient(platform: TestPlatform, { credentials = platform.credentials }: ClientOptions = {}) {
  const { endpoint, region } = platform.ready;
  return new LambdaClient({ endpoint, region, credentials, maxAttempts: 1 });
}

/** A zip of these files. */
export function zipOf(files: Record<string, string>): Buffer {
  return rawZip(Object.entries(files).map(([name, content]) => ({ name, content })));
}

export interface NewFunction extends Partial<Omit<CreateFunctionCommandInput, 'Code'>> {
  files: Record<string, string>;
}

/** Makes a function of these files, in Node unless it is said otherwise. Gives its ARN. */
export async function newFunction(
  client: LambdaClient,
  platform: TestPlatform,
  FunctionName: string,
  { files, ...more }: NewFunction,
): Promise<string> {
  const made = await client.send(
    new CreateFunctionCommand({
      ...{ FunctionName, Runtime: 'nodejs22.x', Handler: 'index.handler', Role: platform.ready.defaultRoleArn },
      ...{ Code: { ZipFile: zipOf(files) }, Timeout: 60, ...more },
    }),
  );
  return made.FunctionArn ?? '';
}

/** What came of an event: what was returned, or the error. */
export interface Invoked {
  error: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what functions answer is as various as the tests
  value: any;
}

export async function invokeFunction(
  client: LambdaClient,
  FunctionName: string,
  event: unknown = {},
  ClientContext?: string,
): Promise<Invoked> {
  const { Payload, FunctionError } = await client.send(
    new InvokeCommand({ FunctionName, Payload: JSON.stringify(event), ClientContext }),
  );
  return { error: FunctionError, value: JSON.parse(Payload?.transformToString() ?? '') };
}
