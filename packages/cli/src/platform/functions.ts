import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { McpLambdaTargetConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import type {
  CreateFunctionCommandInput,
  FunctionCode,
  FunctionConfiguration,
  LambdaClient,
} from '@aws-sdk/client-lambda';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { functionClient } from './clients.ts';
import type { Connection } from './connection.ts';

/** What a function is to be; what is absent stays as it is, or is the platform's default. */
export type FunctionWish = Pick<
  CreateFunctionCommandInput,
  'Runtime' | 'Handler' | 'Timeout' | 'MemorySize' | 'Description' | 'Environment'
> & { Role?: string };

/** Makes a function, or changes the one of that name. Resolves with what it is now. */
export async function putFunction(
  client: LambdaClient,
  FunctionName: string,
  { Role = '', Runtime, ...wish }: FunctionWish,
  code: Pick<FunctionCode, 'S3Bucket' | 'S3Key'>,
): Promise<FunctionConfiguration & { made: boolean }> {
  const sdk = await import('@aws-sdk/client-lambda');
  const known = await client.send(new sdk.GetFunctionCommand({ FunctionName })).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'ResourceNotFoundException') return undefined;
    throw error;
  });
  const plain = ({ $metadata: _, ...rest }: FunctionConfiguration & { $metadata: unknown }) => rest;
  if (!known) {
    const made = await client.send(new sdk.CreateFunctionCommand({ FunctionName, Role, Runtime, ...wish, Code: code }));
    return { ...plain(made), made: true };
  }
  const role = Role === '' ? {} : { Role };
  const settings = { FunctionName, ...role, ...wish, ...(Runtime !== known.Configuration?.Runtime && { Runtime }) };
  await client.send(new sdk.UpdateFunctionConfigurationCommand(settings));
  return { ...plain(await client.send(new sdk.UpdateFunctionCodeCommand({ FunctionName, ...code }))), made: false };
}

/** All functions, in the order of their making. */
export async function listFunctions(client: LambdaClient): Promise<FunctionConfiguration[]> {
  const { paginateListFunctions } = await import('@aws-sdk/client-lambda');
  const found: FunctionConfiguration[] = [];
  for await (const { Functions = [] } of paginateListFunctions({ client }, {})) found.push(...Functions);
  return found;
}

/** The target that a function is, with the tools of a file or a bucket. Rejects with a `CliError` (usage) for a file that is no list of tools. */
export async function functionTarget(
  connection: Connection,
  { cwd }: Terminal,
  name: string,
  tools: string,
): Promise<McpLambdaTargetConfiguration> {
  return { lambdaArn: await arnOf(connection, name), toolSchema: await toolSchema(cwd, tools) };
}

async function arnOf(connection: Connection, name: string): Promise<string> {
  if (name.startsWith('arn:')) return name;
  const client = await functionClient(connection);
  const { GetFunctionCommand } = await import('@aws-sdk/client-lambda');
  const { Configuration } = await client.send(new GetFunctionCommand({ FunctionName: name }));
  return Configuration?.FunctionArn ?? name;
}

async function toolSchema(cwd: string, tools: string): Promise<McpLambdaTargetConfiguration['toolSchema']> {
  if (tools.startsWith('s3://')) return { s3: { uri: tools } };
  let listed: unknown;
  try {
    listed = JSON.parse(await readFile(resolve(cwd, tools), 'utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError('usage', `The tools in ${tools} cannot be read: ${why}`);
  }
  if (!Array.isArray(listed))
    throw new CliError(
      'usage',
      `${tools} must contain a JSON list of tools, each with name, description and inputSchema.`,
    );
  // The platform checks each of them.
  return { inlinePayload: listed };
}
