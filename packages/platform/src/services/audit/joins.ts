import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../kernel/durable-file.ts';
import type { Database, Executor } from '../../kernel/storage/index.ts';
import { list, number, object, type Shape, storedText, text } from '../../kernel/stored-shape.ts';
import { orMissing } from '../../kernel/system-error.ts';
import type { AuditKey } from './audit-key.ts';
import type { Head } from './audit-row.ts';

/** The end that a server's chain had. */
export interface ChainHead extends Head {
  chain: string;
}

/** The ends of all chains at one moment, signed, and hashed with the join before it: no server's chain can be taken out of them. */
export interface Join {
  /** 1 for the first. */
  n: number;
  at: number;
  previous: string;
  /** JSON of `ChainHead[]`. */
  heads: string;
  hash: string;
  signature: string;
}

/** Which join a server has seen last. */
export type KnownJoin = Pick<Join, 'n' | 'hash'>;

export const JOIN_COLUMNS = 'n, at, previous, heads, hash, signature';
const HEADS: Shape<ChainHead[]> = list(object({ chain: text, seq: number, hash: text }));
const KNOWN: Shape<KnownJoin> = object({ n: number, hash: text });

/** What a join says of the chains. Throws `StoredShapeError` or SyntaxError for what is no such list. */
export const headsOf = ({ heads }: Pick<Join, 'heads'>): ChainHead[] => storedText(HEADS, heads);

export function hashOfJoin({ n, at, previous, heads }: Pick<Join, 'n' | 'at' | 'previous' | 'heads'>): string {
  return hash('sha256', JSON.stringify([n, at, previous, heads]), 'hex');
}

/**
 * Joins the ends of all chains, if one has gone on since the last time, and notes the join in the data directory, so that this server knows if
 * joins are cut off. Any server of the database may do it.
 */
export async function joinHeads(
  database: Pick<Database, 'transaction'>,
  { key, directory, now }: { key: AuditKey; directory: string; now: number },
): Promise<void> {
  const last = await database.transaction((tx) => joined(tx, key, now));
  if (last) await replaceFile(pathIn(directory), JSON.stringify({ n: last.n, hash: last.hash }));
}

/** The last join that this server has seen; undefined before the first. */
export async function readKnownJoin(directory: string): Promise<KnownJoin | undefined> {
  const content = await orMissing(readFile(pathIn(directory), 'utf8'));
  return content === undefined ? undefined : storedText(KNOWN, content);
}

async function joined(tx: Executor, key: AuditKey, now: number): Promise<KnownJoin | undefined> {
  // One server at a time; whoever reads meanwhile is not kept waiting.
  await tx.exec('LOCK TABLE audit_joins IN EXCLUSIVE MODE');
  const [last] = await tx.query<Join>(`SELECT ${JOIN_COLUMNS} FROM audit_joins ORDER BY n DESC LIMIT 1`);
  const chains = await tx.query<ChainHead>('SELECT chain, seq, hash FROM audit_chains ORDER BY chain');
  const heads = JSON.stringify(chains.map(({ chain, seq, hash }) => ({ chain, seq, hash })));
  if (chains.length === 0 || last?.heads === heads) return last;
  const next = { n: (last?.n ?? 0) + 1, at: Math.round(now), previous: last?.hash ?? '', heads };
  const hash = hashOfJoin(next);
  await tx.execute(`INSERT INTO audit_joins (${JOIN_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)`, [
    ...[next.n, next.at, next.previous, heads, hash],
    key.sign('join', [hash]),
  ]);
  return { n: next.n, hash };
}

const pathIn = (directory: string): string => join(directory, 'audit-join.json');
