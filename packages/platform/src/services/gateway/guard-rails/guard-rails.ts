import { flag, list, number, object, oneOf, stored, text } from '../../../kernel/stored-shape.ts';

/** In the table `resources`. */
export const GUARD_RAILS_KIND = 'gateway-guard-rails';

/** What a budget is for: each caller, or each key that callers have. */
export const BUDGET_DIMENSIONS = ['caller', 'key'] as const;
export const BUDGET_PERIODS = ['day', 'month'] as const;
/** What is taken out of texts. */
export const REDACTIONS = ['email', 'card', 'phone', 'secret'] as const;
export type Redaction = (typeof REDACTIONS)[number];

/** How many tokens of models somebody may take in a day or a month of UTC. */
export interface Budget {
  per: (typeof BUDGET_DIMENSIONS)[number];
  /** Whose; `*` for each who has none of his own, counted by himself. */
  of: string;
  tokens: number;
  period: (typeof BUDGET_PERIODS)[number];
}

/** Rules for requests to the models of a gateway, besides those of AgentCore. All are off unless the owner sets them. */
export interface GuardRails {
  budgets: readonly Budget[];
  /** How many seconds a whole answer is stored, for the same request of the same caller. 0: not at all. */
  cacheSeconds: number;
  /** Whether requests and answers are written to the platform's log. */
  log: boolean;
  /** The kinds of data that are removed from the log. */
  redact: readonly Redaction[];
  /** Whether it is taken out of requests, too, before models see them. */
  redactRequests: boolean;
}

const BUDGET = object({
  per: oneOf(...BUDGET_DIMENSIONS),
  of: text,
  tokens: number,
  period: oneOf(...BUDGET_PERIODS),
});

export const storedGuardRails = stored<GuardRails>(
  object({
    ...{ budgets: list(BUDGET), cacheSeconds: number, log: flag, redact: list(oneOf(...REDACTIONS)) },
    redactRequests: flag,
  }),
);

export const NO_GUARD_RAILS: GuardRails = {
  ...{ budgets: [], cacheSeconds: 0, log: false, redact: REDACTIONS, redactRequests: false },
};
