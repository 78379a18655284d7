import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { numberIn, type RouteSet, readMembers, SIGNED } from '../../../kernel/http/index.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import type { Engines } from '../engines/engines.ts';
import { type ExplainDeps, explain } from './explain.ts';
import { readReport } from './report.ts';

export interface DecisionRoutesDeps extends ExplainDeps {
  database: Database;
  engines: Engines;
  clock: Clock;
}

const DAY_MS = 86_400_000;
const USUAL_DAYS = 7;
const MOST_DAYS = 400;
const EXAMPLE = '{"requestId": "…", "input": {}}';
const MOST_BYTES = 1024 * 1024;

/** The platform's own routes about decisions: what enforcing would have blocked, and why one call was decided as it was. */
export function decisionRoutes(deps: DecisionRoutesDeps): RouteSet {
  const { database, engines, clock } = deps;
  return {
    name: 'policy-decisions',
    routes: [
      {
        method: 'GET',
        url: '/_platform/policy-engines/:id/report',
        credentials: SIGNED,
        ask({ params, query, accountId }) {
          const resource = engines.arnOf(accountId, params.id ?? '');
          return {
            rights: { action: 'agentplatform:ReadPolicyDecisions', resource },
            async answer() {
              const days = numberIn(query, 'days', { usual: USUAL_DAYS, most: MOST_DAYS });
              await engines.get(accountId, params.id ?? '');
              return { rows: await readReport(database, resource, clock.now() - days * DAY_MS) };
            },
          };
        },
      },
      {
        method: 'POST',
        url: '/_platform/policy-engines/:id/explain',
        credentials: SIGNED,
        body: MOST_BYTES,
        action: 'agentplatform:ReadPolicyDecisions',
        ask({ params, body, accountId }) {
          const resource = engines.arnOf(accountId, params.id ?? '');
          const { requestId, input } = readMembers(body, EXAMPLE);
          return {
            rights: { action: 'agentplatform:ReadPolicyDecisions', resource },
            async answer() {
              if (typeof requestId !== 'string') throw errors.invalidField('requestId', 'must be the id of a request');
              const engine = await engines.get(accountId, params.id ?? '');
              return { decisions: await explain(engine, { requestId, input }, deps) };
            },
          };
        },
      },
    ],
  };
}
