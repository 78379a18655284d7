import type { Principal } from '../../../kernel/auth/index.ts';
import { type Admitted, type Bucket, MONTH_MS, type Permits } from '../rate-limits/index.ts';
import { callerOf } from '../usage/index.ts';
import type { Budget, GuardRails } from './guard-rails.ts';

export interface BudgetsDeps {
  permits: Pick<Permits, 'take' | 'charge'>;
}

const PERIOD_MS: Record<Budget['period'], number> = { day: 86_400_000, month: MONTH_MS };

/** Lets requests to models through as far as the budgets of their callers and keys go: shared by all servers, as rate limits are. */
export class Budgets {
  readonly #deps: BudgetsDeps;

  constructor(deps: BudgetsDeps) {
    this.#deps = deps;
  }

  /** Holds about as many tokens as a request may take until it ends, and then counts those that it took. Rejects with ThrottlingException, which names the budget. */
  async hold(
    { budgets }: GuardRails,
    { gatewayArn, principal, tokens }: { gatewayArn: string; principal: Principal; tokens: () => number },
  ): Promise<Admitted> {
    const { permits } = this.#deps;
    const held: { bucket: Bucket; settle: (used: number) => void }[] = [];
    let taken = 0;
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      for (const { settle } of held) settle(taken);
    };
    try {
      for (const bucket of bucketsOf(budgets, gatewayArn, principal))
        held.push({ bucket, settle: await permits.take(bucket, tokens()) });
    } catch (error) {
      end();
      throw error;
    }
    const used = (count: number): void => {
      taken += count;
      if (ended) for (const { bucket } of held) permits.charge(bucket, count);
    };
    return { end, used };
  }
}

/** One for each dimension and period: that which names him, else that for everybody. */
function bucketsOf(budgets: readonly Budget[], gatewayArn: string, principal: Principal): Bucket[] {
  const chosen = new Map<string, Budget>();
  for (const budget of budgets) {
    const value = subjectOf(budget, principal);
    if (value === undefined || (budget.of !== value && budget.of !== '*')) continue;
    const kind = `${budget.per} ${budget.period}`;
    if (budget.of !== '*' || !chosen.has(kind)) chosen.set(kind, budget);
  }
  return [...chosen.values()].map((budget): Bucket => {
    const { per, tokens, period } = budget;
    return {
      key: JSON.stringify(['budget', gatewayArn, per, period, subjectOf(budget, principal)]),
      ...{ of: 'tokens', rate: tokens, periodMs: PERIOD_MS[period], name: `The budget of this ${per} at this gateway` },
    };
  });
}

/** The subject of a budget. For `caller`, the name in the usage report. For `key`, the access key of the signature or the client of the token. Undefined if there is none. */
function subjectOf({ per }: Budget, principal: Principal): string | undefined {
  if (per === 'caller') return callerOf(principal);
  if (principal.kind === 'iam') return principal.accessKeyId;
  if (principal.kind !== 'oauth') return undefined;
  const { client_id, azp } = principal.claims;
  return [client_id, azp].find((value): value is string => typeof value === 'string');
}
