import { dollarsOf, isUnit, type Prices, priceOf, type Unit } from '../../kernel/metering/index.ts';
import type { Executor } from '../../kernel/storage/index.ts';

/** What lines of a report are by: the resource, the session, who it was used for, the day (UTC), or the piece of the platform. */
export const groupings = ['agent', 'session', 'user', 'day', 'piece'] as const;
export type Grouping = (typeof groupings)[number];

/** What was used, and what it costs. */
export interface Use {
  /** Whole numbers, as decimal texts: they may be larger than a number of JSON. */
  units: Partial<Record<Unit, string>>;
  /** In nano-dollars, each unit priced once. */
  costs: Partial<Record<Unit, string>>;
  nanoDollars: string;
  /** The same in dollars, with nine decimals. */
  dollars: string;
}

export interface UsageReport {
  by: Grouping;
  /** First and last day. */
  from: string;
  to: string;
  /** The newest first; what is not known of a line is an empty text. */
  lines: (Use & { key: string })[];
  /** Of all lines, also of those that are left out. */
  total: Use;
  more: boolean;
}

export interface Asked {
  accountId: string;
  by: Grouping;
  from: string;
  to: string;
  most: number;
}

/** What the account used on these days. */
export async function readUsage(
  database: Pick<Executor, 'query'>,
  prices: Prices,
  { accountId, by, from, to, most }: Asked,
): Promise<UsageReport> {
  const rows = await database.query<Counted>(LINES[by], [accountId, from, to, most + 1]);
  const totals = await database.query<Counted>(TOTAL, [accountId, from, to]);
  const keys = [...Map.groupBy(rows, ({ key }) => key)];
  const lines = keys.slice(0, most).map(([key, counted]) => ({ key, ...useOf(counted, prices) }));
  return { by, from, to, lines, total: useOf(totals, prices), more: keys.length > most };
}

interface Counted {
  key: string;
  unit: string;
  quantity: string;
}

/** Prices what was counted: each unit once, and the sum of those. Units that this version does not know are left out. */
export function useOf(counted: readonly Pick<Counted, 'unit' | 'quantity'>[], prices: Prices): Use {
  const quantities = new Map<Unit, bigint>();
  for (const { unit, quantity } of counted)
    if (isUnit(unit)) quantities.set(unit, (quantities.get(unit) ?? 0n) + BigInt(quantity));
  const costs = [...quantities].map(([unit, quantity]) => [unit, priceOf(unit, quantity, prices)] as const);
  const sum = costs.reduce((total, [, cost]) => total + cost, 0n);
  return {
    units: Object.fromEntries([...quantities].map(([unit, quantity]) => [unit, quantity.toString()])),
    costs: Object.fromEntries(costs.map(([unit, cost]) => [unit, cost.toString()])),
    nanoDollars: sum.toString(),
    dollars: dollarsOf(sum),
  };
}

const KEYS: Record<Grouping, string> = {
  agent: 'm.resource_arn',
  session: 'm.session_id',
  // What a session used is its first known user's.
  user: `coalesce(nullif(m.user_id, ''), u.user_id, '')`,
  day: 'm.day::text',
  piece: 'm.piece',
};

const linesBy = (grouping: Grouping): string => `
  WITH users AS (
    SELECT session_id, (array_agg(user_id ORDER BY day, user_id))[1] AS user_id FROM metered
    WHERE account_id = $1 AND unit = 'invocations' AND user_id <> '' AND session_id <> '' GROUP BY session_id
  ), used AS (
    SELECT ${KEYS[grouping]} AS key, m.unit, m.quantity, m.day FROM metered m LEFT JOIN users u ON u.session_id = m.session_id
    WHERE m.account_id = $1 AND m.day BETWEEN $2::date AND $3::date
  ), keys AS (SELECT key, max(day) AS last FROM used GROUP BY key ORDER BY last DESC, key LIMIT $4)
  SELECT keys.key, used.unit, sum(used.quantity)::text AS quantity FROM keys JOIN used USING (key)
  GROUP BY keys.key, keys.last, used.unit ORDER BY keys.last DESC, keys.key, used.unit`;

const LINES: Record<Grouping, string> = {
  agent: linesBy('agent'),
  session: linesBy('session'),
  user: linesBy('user'),
  day: linesBy('day'),
  piece: linesBy('piece'),
};

const TOTAL = `
  SELECT '' AS key, unit, sum(quantity)::text AS quantity FROM metered
  WHERE account_id = $1 AND day BETWEEN $2::date AND $3::date GROUP BY unit ORDER BY unit`;
