import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Connection } from '../platform/connection.ts';
import { stateFolder } from './state-folder.ts';

/** What this folder remembers of one platform. */
export interface DeployRecord {
  agentRuntimeId: string;
  agentRuntimeArn: string;
  /** The sessions that were invoked last, by the endpoint of the agent, for `invoke --continue`. */
  lastSessions?: Record<string, string>;
}

const header = 'Written by agentcore; what is deployed where. Not for version control.';

/** What was deployed from `folder` to that platform and account; undefined when nothing was, or the record cannot be read. */
export async function readRecord(folder: string, connection: Connection): Promise<DeployRecord | undefined> {
  const found = (await readAll(folder))[keyOf(connection)];
  if (typeof found !== 'object' || found === null) return undefined;
  const { agentRuntimeId, agentRuntimeArn, lastSessions } = found as Record<string, unknown>;
  if (typeof agentRuntimeId !== 'string' || typeof agentRuntimeArn !== 'string') return undefined;
  const sessions = Object.entries(lastSessions ?? {}).filter(
    (one): one is [string, string] => typeof one[1] === 'string',
  );
  return { agentRuntimeId, agentRuntimeArn, lastSessions: Object.fromEntries(sessions) };
}

/** Remembers `record`, or forgets with undefined. */
export async function writeRecord(
  folder: string,
  connection: Connection,
  record: DeployRecord | undefined,
): Promise<void> {
  const all = await readAll(folder);
  if (record) all[keyOf(connection)] = record;
  else delete all[keyOf(connection)];
  const path = statePath(folder);
  await stateFolder(folder);
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify({ about: header, deployed: all }, undefined, 2)}\n`);
  await rename(temporary, path);
}

async function readAll(folder: string): Promise<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(await readFile(statePath(folder), 'utf8'));
    const deployed = typeof value === 'object' && value !== null ? Reflect.get(value, 'deployed') : undefined;
    return typeof deployed === 'object' && deployed !== null ? { ...deployed } : {};
  } catch {
    // No file, or a damaged one: the platform is asked by name instead.
    return {};
  }
}

function statePath(folder: string): string {
  return join(folder, '.agentcore', 'state.json');
}

function keyOf(connection: Connection): string {
  return `${connection.endpoint} ${connection.accountId ?? connection.profile ?? 'default'}`;
}
