import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from './kernel/clock.ts';
import { replaceFile } from './kernel/durable-file.ts';
import { leaseFile } from './kernel/sandbox/index.ts';
import { createSqlServerStore, ServerLease } from './kernel/sessions/index.ts';
import type { Database } from './kernel/storage/index.ts';
import { orMissing } from './kernel/system-error.ts';

/** Where a server that listens at `origin` is reached from its own machine. */
export function reachable(origin: string): string {
  return new URL(origin).host.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, '127.0.0.1');
}

const LEASE_BYTES = 64;

export interface LeaseParts {
  database: Database;
  dataDir: string;
  leaseSeconds: number;
  clock: Clock;
  log: Logger;
}

/** This server's hold on its sessions. Who it is stays with the data directory, which holds its sandboxes. */
export async function createServerLease(parts: LeaseParts): Promise<ServerLease> {
  const { database, dataDir, leaseSeconds, clock, log } = parts;
  const file = leaseFile(dataDir);
  const shared = database.kind === 'postgres';
  // One of an earlier run on a shared database would end sandboxes that nobody else can claim now.
  if (!shared) await rm(file, { force: true });
  let beats = 0;
  return new ServerLease({
    store: createSqlServerStore(database),
    serverId: await serverId(join(dataDir, 'server-id')),
    shared,
    leaseMs: leaseSeconds * 1000,
    async beat(heldMs) {
      beats += 1;
      await overwrite(file, `${process.pid}.${beats} ${Math.floor(heldMs)}`.padEnd(LEASE_BYTES));
    },
    clock,
    log,
  });
}

/** In place and of one length, so that a disk that is full ends no session. */
async function overwrite(path: string, text: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    await file.write(text, 0);
  } finally {
    await file.close();
  }
}

async function serverId(file: string): Promise<string> {
  const kept = (await orMissing(readFile(file, 'utf8')))?.trim();
  if (kept) return kept;
  const made = `server-${randomBytes(8).toString('hex')}`;
  await replaceFile(file, `${made}\n`);
  return made;
}
