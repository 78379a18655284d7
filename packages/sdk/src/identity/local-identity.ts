import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import type { BedrockAgentCoreClient } from '@aws-sdk/client-bedrock-agentcore';

/** Who an agent is outside of the platform. */
export interface LocalIdentity {
  workloadName: string;
  userId: string;
}

/** In the working directory; the vendor's SDK keeps it there, with these members. */
export const LOCAL_FILE = '.agentcore.json';

/**
 * Reads that identity, or makes what is missing of it and keeps it. Throws an Error for a file that cannot be read as JSON, where the package
 * that makes identities is missing, and the errors of the AWS SDK.
 */
export async function localIdentity(client: BedrockAgentCoreClient): Promise<LocalIdentity> {
  const kept = await readKept();
  const text = (name: string): string | undefined => {
    const value = kept[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const workloadName = text('workload_identity_name') ?? (await makeIdentity(client));
  const userId = text('user_id') ?? randomUUID().slice(0, 8);
  const whole = { ...kept, workload_identity_name: workloadName, user_id: userId };
  if (JSON.stringify(whole) !== JSON.stringify(kept))
    await writeFile(LOCAL_FILE, `${JSON.stringify(whole, undefined, 2)}\n`);
  return { workloadName, userId };
}

async function readKept(): Promise<Record<string, unknown>> {
  let content: string;
  try {
    content = await readFile(LOCAL_FILE, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw error;
  }
  try {
    const value: unknown = JSON.parse(content);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Said below.
  }
  throw new Error(`${LOCAL_FILE} holds no JSON object. Remove it, and a new one is made.`);
}

async function makeIdentity(client: BedrockAgentCoreClient): Promise<string> {
  const PACKAGE = '@aws-sdk/client-bedrock-agentcore-control';
  const sdk = await import('@aws-sdk/client-bedrock-agentcore-control').catch((cause: unknown) => {
    throw new Error(`Outside of the platform this needs the package ${PACKAGE}: npm install ${PACKAGE}`, { cause });
  });
  const { region, credentials, endpoint } = client.config;
  const control = new sdk.BedrockAgentCoreControlClient({ region, credentials, ...(endpoint && { endpoint }) });
  try {
    const name = `workload-${randomUUID().slice(0, 8)}`;
    await control.send(new sdk.CreateWorkloadIdentityCommand({ name }));
    return name;
  } finally {
    control.destroy();
  }
}
