/** What is counted. Quantities are whole numbers; a price is of so many of them. */
export const units = {
  'memory-kib-seconds': { piece: 'sessions', per: 1_048_576 * 3600, of: 'GB-hours of memory' },
  'cpu-microseconds': { piece: 'sessions', per: 3_600_000_000, of: 'vCPU-hours' },
  'gateway-calls': { piece: 'gateway', per: 1_000, of: 'calls of tools, in thousands' },
  'gateway-searches': { piece: 'gateway', per: 1_000, of: 'searches for tools, in thousands' },
  'memory-events': { piece: 'memory', per: 1_000, of: 'events, in thousands' },
  'memory-records': { piece: 'memory', per: 1_000, of: 'records that were made, in thousands' },
  'memory-retrievals': { piece: 'memory', per: 1_000, of: 'retrievals, in thousands' },
  'policy-decisions': { piece: 'policy', per: 1_000, of: 'decisions, in thousands' },
  'input-tokens': { piece: 'models', per: 1_000_000, of: 'tokens of requests, in millions' },
  'output-tokens': { piece: 'models', per: 1_000_000, of: 'tokens of answers, in millions' },
  invocations: { piece: 'sessions', per: 1_000, of: 'requests to sessions, in thousands' },
} as const;

export type Unit = keyof typeof units;

export const isUnit = (name: string): name is Unit => Object.hasOwn(units, name);

/** US dollars for so many of a unit (`units[unit].per`), as a decimal text. Those of sessions are the specification's (Limits, Billing rules). */
export type Prices = Readonly<Record<Unit, string>>;

export const DEFAULT_PRICES: Prices = {
  'memory-kib-seconds': '0.00945',
  'cpu-microseconds': '0.0895',
  'gateway-calls': '0.005',
  'gateway-searches': '0.025',
  'memory-events': '0.25',
  'memory-records': '0.75',
  'memory-retrievals': '0.5',
  'policy-decisions': '0.025',
  'input-tokens': '0',
  'output-tokens': '0',
  invocations: '0',
};
