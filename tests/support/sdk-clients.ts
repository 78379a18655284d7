import * as dataSdk from '@aws-sdk/client-bedrock-agentcore';
import * as controlSdk from '@aws-sdk/client-bedrock-agentcore-control';
import * as modelsSdk from '@aws-sdk/client-bedrock-runtime';
import { type OperationName, operations } from '../../packages/contract/src/index.ts';

/** A request as the SDK hands it to its transport; query values are not yet encoded. */
export interface SdkRequest {
  method: string;
  path: string;
  query: Record<string, string | string[] | null>;
  headers: Record<string, string>;
  body?: unknown;
}

export interface SdkResponse {
  statusCode: number;
  headers: Record<string, string>;
  body: unknown;
}

interface SdkClient {
  send(command: object): Promise<Record<string, unknown>>;
  destroy(): void;
}

export interface SdkOptions {
  endpoint: string;
  /** Replaces the SDK's transport; without it real HTTP is spoken. */
  handle?: (request: SdkRequest) => Promise<SdkResponse>;
}

/** Calls any operation of the contract, by name, through the unmodified AWS SDK for JavaScript. */
export interface AnySdk {
  call(operation: OperationName, input: unknown): Promise<Record<string, unknown>>;
  destroy(): void;
}

const modules = { data: dataSdk, control: controlSdk, models: modelsSdk };

/** Names of the operations that the installed SDK has, per plane. */
export function sdkOperations(plane: keyof typeof modules): string[] {
  return Object.keys(modules[plane])
    .filter((name) => name.endsWith('Command') && name !== '$Command')
    .map((name) => name.slice(0, -'Command'.length));
}

/** Members of each structure as the installed SDK knows them, by shape name. */
export function sdkMembers(plane: keyof typeof modules): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const value of Object.values<unknown>(modules[plane])) {
    // A structure's schema is [kind, namespace, name, traits, member names, …].
    if (Array.isArray(value) && typeof value[2] === 'string' && Array.isArray(value[4]))
      found.set(value[2], value[4].map(String));
  }
  return found;
}

/** The class that the SDK throws for an error code, if it has one of its own. */
export function sdkErrorClass(
  plane: keyof typeof modules,
  code: string,
): (new (...args: never[]) => Error) | undefined {
  const found: unknown = Object.entries(modules[plane]).find(([name]) => name === code)?.[1];
  return typeof found === 'function' ? (found as new (...args: never[]) => Error) : undefined;
}

function commandFor(operation: OperationName, input: unknown): object {
  const exported: unknown = Object.entries(modules[operations[operation].plane]).find(
    ([n]) => n === `${operation}Command`,
  )?.[1];
  if (typeof exported !== 'function') throw new Error(`The SDK has no ${operation}Command`);
  return Reflect.construct(exported, [input]);
}

/** The clients of the SDK against one endpoint, one attempt each. */
export function anySdk({ endpoint, handle }: SdkOptions): AnySdk {
  const config = {
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'not-a-secret' },
    maxAttempts: 1,
    ...(handle === undefined
      ? {}
      : {
          requestHandler: { handle: async (request: unknown) => ({ response: await handle(request as SdkRequest) }) },
        }),
  };
  const clients = {
    data: new dataSdk.BedrockAgentCoreClient(config as dataSdk.BedrockAgentCoreClientConfig) as unknown as SdkClient,
    control: new controlSdk.BedrockAgentCoreControlClient(
      config as controlSdk.BedrockAgentCoreControlClientConfig,
    ) as unknown as SdkClient,
    models: new modelsSdk.BedrockRuntimeClient(config as modelsSdk.BedrockRuntimeClientConfig) as unknown as SdkClient,
  };
  return {
    call: (operation, input) => clients[operations[operation].plane].send(commandFor(operation, input)),
    destroy() {
      for (const client of Object.values(clients)) client.destroy();
    },
  };
}
