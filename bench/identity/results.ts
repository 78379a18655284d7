import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withSection } from '../../scripts/docs/pages.ts';
import { busyNote, type Machine, takenOn } from '../support/machine.ts';
import { rounded } from '../support/statistics.ts';
import type { TokenTimes } from './cached-token.ts';
import type { VerificationTimes } from './jwt-verification.ts';
import type { WaitersResult } from './waiters.ts';

/** Times in milliseconds. */
export interface IdentityResults {
  /** ISO 8601. */
  at: string;
  machine: Machine;
  tokens: TokenTimes;
  verification: VerificationTimes;
  waiters: WaitersResult;
}

const resultsFile = fileURLToPath(new URL('../results/identity.json', import.meta.url));
const page = fileURLToPath(new URL('../../docs/benchmarks.md', import.meta.url));
const ms = (value: number): string => `${rounded(value, 3)} ms`;

/** The results as a table in Markdown. */
export function table({ tokens, verification, waiters }: IdentityResults): string {
  const [token, ...others] = tokens.operations;
  const peers = (of: 'p50' | 'p99'): string => others.map((one) => `${one.name} ${ms(one[of])}`).join(', ');
  const rows = [
    [
      'Cached token, p50',
      ms(token?.p50 ?? Number.NaN),
      peers('p50'),
      `${rounded(tokens.p50Ratio, 2)} × ${tokens.cheapest}`,
      'at most 1.3',
    ],
    [
      'Cached token, p99',
      ms(token?.p99 ?? Number.NaN),
      peers('p99'),
      `${rounded(tokens.p99Ratio, 2)} × ${tokens.cheapest}`,
      'at most 3',
    ],
    [
      'JWT verified, keys at hand, p50',
      ms(verification.platform),
      `jose alone ${ms(verification.jose)}`,
      `${rounded(verification.ratio, 2)} ×`,
      'at most 1.2',
    ],
    [
      `${waiters.waiters} who wait for one expired token`,
      `${waiters.answered} answered, ${waiters.tokens} token`,
      '',
      `${waiters.refreshes} request to the provider`,
      '1',
    ],
  ];
  const head = ['| measure | platform | peer | compared | aim |', '|---|---|---|---|---|'];
  return [...head, ...rows.map((row) => `| ${row.join(' | ')} |`)].join('\n');
}

/** Keeps the results in the repository and shows them in the docs. */
export async function keepResults(results: IdentityResults): Promise<void> {
  await mkdir(dirname(resultsFile), { recursive: true });
  await writeFile(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  const taken = `${takenOn(results.at, results.machine)}.${busyNote(results.machine, 'times are too high, and ratios are those of turns beside each other')}`;
  await writeFile(page, withSection(await readFile(page, 'utf8'), 'identity', `${taken}\n\n${table(results)}`));
}
