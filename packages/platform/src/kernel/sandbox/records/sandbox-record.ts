import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessIdentity } from '../../processes/index.ts';
import type { NetworkPolicy } from '../sandbox.ts';
import { property } from './json-path.ts';
import { networkPolicy, text, texts } from './record-fields.ts';

/** What a later server must know to take a sandbox over or to remove it; `sandbox.json` in its directory. */
export interface SandboxRecord {
  id: string;
  labels: Record<string, string>;
  isolation: string;
  owner: ProcessIdentity;
  /** Name under which its address was leased. */
  slot: string;
  ip: string;
  hostInterface: string;
  network: NetworkPolicy;
  /** First id of its range of the host's. */
  firstId: number | undefined;
  /** Files that each of its processes may hold open, where commands are to begin with that limit. */
  openFiles: number | undefined;
}

const FILE = 'sandbox.json';

export async function writeRecord(dir: string, record: SandboxRecord): Promise<void> {
  const draft = join(dir, `${FILE}.new`);
  await writeFile(draft, JSON.stringify(record), { mode: 0o600 });
  await rename(draft, join(dir, FILE));
}

/** The record in `dir`, or undefined when it is missing or incomplete. */
export async function readRecord(dir: string): Promise<SandboxRecord | undefined> {
  const text = await readFile(join(dir, FILE), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return decode(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function decode(value: unknown): SandboxRecord {
  const owner = property(value, 'owner');
  return {
    id: text(value, 'id'),
    labels: texts(property(value, 'labels')),
    isolation: text(value, 'isolation'),
    owner: { pid: Number(property(owner, 'pid')), startedAt: text(owner, 'startedAt') },
    slot: text(value, 'slot'),
    ip: text(value, 'ip'),
    hostInterface: text(value, 'hostInterface'),
    network: networkPolicy(property(value, 'network')),
    firstId: Number(property(value, 'firstId')) || undefined,
    openFiles: Number(property(value, 'openFiles')) || undefined,
  };
}
