import { errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import { dayOf, type Prices } from '../../kernel/metering/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { type Grouping, groupings, readUsage } from './usage-report.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  prices: Prices;
  clock: Pick<Clock, 'now'>;
}

const MOST_LINES = 1_000;
const USUAL_DAYS = 30;
const DAY_MS = 24 * 3_600_000;

/** The bill: what the account used, by whatever it is asked for, and what that costs. */
export function usageRoutes({ database, prices, clock }: UsageRoutesDeps): RouteSet {
  return {
    name: 'usage',
    routes: [
      {
        method: 'GET',
        url: '/_platform/usage',
        credentials: SIGNED,
        ask: ({ query, accountId }) => ({
          rights: { action: 'agentplatform:ReadUsage', resource: '*' },
          answer: () => readUsage(database, prices, { accountId, most: MOST_LINES, ...askedIn(query, clock.now()) }),
        }),
      },
    ],
  };
}

/** `by`, `from` and `to`; the last 30 days by agent where nothing is said. Throws ValidationException. */
function askedIn(query: URLSearchParams, now: number): { by: Grouping; from: string; to: string } {
  const asked = query.get('by') ?? 'agent';
  const by = groupings.find((one) => one === asked);
  if (!by) throw errors.invalidField('by', `must be one of ${groupings.join(', ')}`);
  const to = dayIn(query, 'to') ?? dayOf(now);
  const from = dayIn(query, 'from') ?? dayOf(Date.parse(to) - (USUAL_DAYS - 1) * DAY_MS);
  if (from > to) throw errors.invalidField('from', 'must not be after to');
  return { by, from, to };
}

function dayIn(query: URLSearchParams, name: string): string | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const known = /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && dayOf(Date.parse(text)) === text;
  if (!known) throw errors.invalidField(name, 'must be a day such as 2026-11-27');
  return text;
}
