import type { Executor } from '../../kernel/storage/index.ts';
import type { AuditKey } from './audit-key.ts';
import { beginOf, CHAINED_COLUMNS, type ChainedRow, type Head, hashOf } from './audit-row.ts';
import { isSame, type KnownHead } from './head-file.ts';
import { type ChainHead, hashOfJoin, headsOf, JOIN_COLUMNS, type Join, type KnownJoin } from './joins.ts';
import { CHECKPOINT_COLUMNS, type Checkpoint, statementOf } from './retention.ts';

/** What is wrong with the trail, and where: at which place of which chain, or at which join. */
export interface Finding {
  what: 'CHANGED' | 'REMOVED' | 'REORDERED' | 'CUT_OFF' | 'FORGED' | 'UNCHAINED';
  chain?: string;
  /** The first and the last place of the chain that it is about. */
  from?: number;
  to?: number;
  /** The id of the request that a row is of, where there is a row. */
  requestId?: string;
  message: string;
}

/** One server's part of the trail. */
export interface ChainReport extends Head {
  chain: string;
  /** Rows that are there. */
  rows: number;
  /** Rows up to that place were removed by retention, the last ones then; absent where none were. */
  expired?: { upTo: number; rows: number; at: number };
}

export interface AuditReport {
  intact: boolean;
  chains: ChainReport[];
  /** Rows from before there were chains, of which nothing can be said. */
  unchained: number;
  joins: number;
  findings: Finding[];
  /** There are more findings than are listed. */
  more: boolean;
  /** Ed25519, PEM: what joins and checkpoints are signed with. */
  publicKey: string;
}

export interface Known {
  /** The chain of this server, and what it knows of its end. */
  chain: string;
  head: KnownHead | undefined;
  join: KnownJoin | undefined;
}

const PAGE = 2_000;
const MOST_FINDINGS = 100;
/** So many rows that do not fit are looked at for whether they stood elsewhere. */
const MOST_MISFITS = 200;

/** Findings up to the bound. */
class Findings {
  readonly list: Finding[] = [];
  more = false;

  add(finding: Finding): void {
    if (this.list.length < MOST_FINDINGS) this.list.push(finding);
    else this.more = true;
  }
}

/**
 * Goes through the whole trail: every row against the one before it, the ends against what joins have signed and this server knows by itself, and
 * what is missing at the beginning against what retention has signed. Reads; changes nothing.
 */
export async function verifyAudit(
  database: Pick<Executor, 'query'>,
  key: AuditKey,
  known: Known,
): Promise<AuditReport> {
  const findings = new Findings();
  const checkpoints = await readCheckpoints(database, key, findings);
  const joins = await readJoins(database, key, known.join, findings);
  const ends = await database.query<ChainHead>('SELECT chain, seq, hash FROM audit_chains ORDER BY chain');
  for (const { at, left, found } of known.head?.breaks ?? [])
    findings.add({
      ...{ what: 'CUT_OFF', chain: known.chain, from: found.seq + 1, to: left.seq },
      message: `The chain ended at ${found.seq} when it went on at ${new Date(at).toISOString()}, but this server had left it at ${left.seq}.`,
    });
  const chains = new Map(ends.map((end) => [end.chain, end]));
  const names = new Set([...chains.keys(), ...joins.signed.keys(), ...checkpoints.keys()]);
  if (known.head) names.add(known.chain);
  const reports: ChainReport[] = [];
  for (const chain of [...names].sort()) {
    const promised = [chains.get(chain), chain === known.chain ? known.head?.after : undefined];
    const walk = new ChainWalk(chain, checkpoints.get(chain), joins.signed.get(chain) ?? new Map(), findings);
    reports.push(await walk.run(database, promised));
  }
  const [{ unchained = 0 } = {}] = await database.query<{ unchained: number }>(
    'SELECT count(*) AS unchained FROM audit WHERE chain IS NULL',
  );
  const [{ late = 0 } = {}] = await database.query<{ late: number }>(
    'SELECT count(*) AS late FROM audit WHERE chain IS NULL AND at > (SELECT min(at) FROM audit_joins WHERE n = 1)',
  );
  if (late > 0)
    findings.add({
      what: 'UNCHAINED',
      message: `${late} rows are in no chain though they are younger than the first join.`,
    });
  const { list, more } = findings;
  return {
    intact: list.length === 0,
    chains: reports,
    unchained,
    joins: joins.count,
    findings: list,
    more,
    publicKey: key.publicKey,
  };
}

/** One chain from its beginning, or from where retention has left it, to its end. */
class ChainWalk {
  readonly #chain: string;
  readonly #begin: Head;
  readonly #checkpoint: Checkpoint | undefined;
  readonly #signed: ReadonlyMap<number, string>;
  readonly #findings: Findings;
  /** Rows whose hash is not that of their content at their place. */
  readonly #misfits: ChainedRow[] = [];
  #last: Head;
  #rows = 0;

  constructor(
    chain: string,
    checkpoint: Checkpoint | undefined,
    signed: ReadonlyMap<number, string>,
    findings: Findings,
  ) {
    this.#chain = chain;
    this.#checkpoint = checkpoint;
    this.#begin = checkpoint ?? beginOf(chain);
    this.#last = this.#begin;
    this.#signed = signed;
    this.#findings = findings;
  }

  /** `promised`: ends that the chain had according to somebody. */
  async run(database: Pick<Executor, 'query'>, promised: readonly (Head | undefined)[]): Promise<ChainReport> {
    for (let page: ChainedRow[]; ; ) {
      page = await database.query<ChainedRow>(
        `SELECT ${CHAINED_COLUMNS} FROM audit WHERE chain = $1 AND seq > $2 ORDER BY seq LIMIT ${PAGE}`,
        [this.#chain, this.#rows === 0 ? Number.MIN_SAFE_INTEGER : this.#last.seq],
      );
      for (const row of page) this.#row(row);
      if (page.length < PAGE) break;
    }
    this.#judgeMisfits();
    this.#end(promised);
    const { seq, hash } = this.#last;
    const expired = this.#checkpoint && {
      ...{ upTo: this.#checkpoint.seq, rows: this.#checkpoint.removed, at: this.#checkpoint.at },
    };
    return { chain: this.#chain, seq, hash, rows: this.#rows, ...(expired && { expired }) };
  }

  #row(row: ChainedRow): void {
    const { seq, requestId } = row;
    const last = this.#last;
    this.#rows += 1;
    this.#last = { seq, hash: row.hash };
    if (seq <= this.#begin.seq) {
      this.#find(
        'UNCHAINED',
        { from: seq, to: seq, requestId },
        'A row stands before the place where the chain begins.',
      );
      this.#last = last;
      return;
    }
    if (seq > last.seq + 1)
      this.#find(
        'REMOVED',
        { from: last.seq + 1, to: seq - 1 },
        `${seq - last.seq - 1} rows are missing, and retention has not removed them.`,
      );
    if (hashOf(row, row) !== row.hash) {
      if (this.#misfits.length < MOST_MISFITS) this.#misfits.push(row);
      else this.#findings.more = true;
    } else if (seq === last.seq + 1 && row.previous !== last.hash && !this.#misfits.some((one) => one.seq === last.seq))
      this.#find(
        'CHANGED',
        { from: last.seq, to: last.seq },
        'The row was replaced: the one after it was hashed with another.',
      );
    const signed = this.#signed.get(seq);
    if (signed !== undefined && signed !== row.hash && !this.#misfits.some((one) => one.seq === seq))
      this.#find(
        'CHANGED',
        { from: this.#signedBefore(seq) + 1, to: seq, requestId },
        'Rows were written anew: a signed join has another hash for the last of them.',
      );
  }

  /** A row that fits at the place of another misfit stood there; whatever else does not fit was changed. */
  #judgeMisfits(): void {
    for (const row of this.#misfits) {
      const { seq, requestId } = row;
      const stood = this.#misfits.find((other) => hashOf(row, { ...row, seq: other.seq }) === row.hash);
      if (stood) this.#find('REORDERED', { from: seq, to: seq, requestId }, `The row stood at ${stood.seq}.`);
      else
        this.#find(
          'CHANGED',
          { from: seq, to: seq, requestId },
          'The row does not have the hash that it was written with.',
        );
    }
  }

  #end(promised: readonly (Head | undefined)[]): void {
    const signed = [...this.#signed].map(([seq, hash]) => ({ seq, hash }));
    const furthest = [...promised, ...signed].reduce(
      (far: Head, end) => (end && end.seq > far.seq ? end : far),
      this.#last,
    );
    const { seq } = this.#last;
    if (furthest.seq > seq)
      this.#find(
        'CUT_OFF',
        { from: seq + 1, to: furthest.seq },
        `The chain ends at ${seq}, but it had ${furthest.seq} rows.`,
      );
    else if (
      promised.some((end) => end && end.seq === seq && !isSame(end, this.#last)) &&
      (this.#signed.get(seq) ?? this.#last.hash) === this.#last.hash &&
      this.#misfits.length === 0
    )
      this.#find('CHANGED', { from: seq, to: seq }, 'The last row was written anew: the chain had another hash there.');
  }

  #signedBefore(seq: number): number {
    return Math.max(this.#begin.seq, ...[...this.#signed.keys()].filter((one) => one < seq));
  }

  #find(what: Finding['what'], where: Pick<Finding, 'from' | 'to' | 'requestId'>, message: string): void {
    this.#findings.add({ what, chain: this.#chain, ...where, message });
  }
}

async function readCheckpoints(
  database: Pick<Executor, 'query'>,
  key: AuditKey,
  findings: Findings,
): Promise<Map<string, Checkpoint>> {
  const rows = await database.query<Checkpoint>(`SELECT ${CHECKPOINT_COLUMNS} FROM audit_checkpoints ORDER BY chain`);
  const good = rows.filter((row) => key.verify('checkpoint', statementOf(row), row.signature));
  for (const { chain, seq } of rows.filter((row) => !good.includes(row)))
    findings.add({
      what: 'FORGED',
      chain,
      to: seq,
      message: 'A checkpoint of retention is not signed by the platform.',
    });
  return new Map(good.map((row) => [row.chain, row]));
}

/** What signed joins say of the chains: hashes by chain and place. */
async function readJoins(
  database: Pick<Executor, 'query'>,
  key: AuditKey,
  known: KnownJoin | undefined,
  findings: Findings,
): Promise<{ signed: Map<string, Map<number, string>>; count: number }> {
  const signed = new Map<string, Map<number, string>>();
  let last: Join | undefined;
  let count = 0;
  for (let page: Join[]; ; ) {
    page = await database.query<Join>(`SELECT ${JOIN_COLUMNS} FROM audit_joins WHERE n > $1 ORDER BY n LIMIT ${PAGE}`, [
      last?.n ?? 0,
    ]);
    for (const join of page) {
      count += 1;
      if (hashOfJoin(join) !== join.hash || !key.verify('join', [join.hash], join.signature))
        findings.add({ what: 'FORGED', message: `Join ${join.n} is not signed by the platform.` });
      else for (const { chain, seq, hash } of headsOf(join)) noteHead(signed, { chain, seq, hash });
      if (last && join.n !== last.n + 1)
        findings.add({ what: 'REMOVED', message: `The joins from ${last.n + 1} to ${join.n - 1} are missing.` });
      else if (last && join.previous !== last.hash)
        findings.add({ what: 'CHANGED', message: `Join ${last.n} is not the one that join ${join.n} follows.` });
      if (known?.n === join.n && known.hash !== join.hash)
        findings.add({ what: 'CHANGED', message: `Join ${join.n} is not the one that this server has seen.` });
      last = join;
    }
    if (page.length < PAGE) break;
  }
  if (known && known.n > (last?.n ?? 0))
    findings.add({
      what: 'CUT_OFF',
      message: `The joins end at ${last?.n ?? 0}, but this server has seen join ${known.n}.`,
    });
  return { signed, count };
}

function noteHead(signed: Map<string, Map<number, string>>, { chain, seq, hash }: ChainHead): void {
  const places = signed.get(chain) ?? new Map<number, string>();
  signed.set(chain, places.set(seq, hash));
}
