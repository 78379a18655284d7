import type { Database } from '../../../kernel/storage/index.ts';
import { gatewaysOf } from '../engines/engines.ts';
import type { Engine } from '../engines/policy-engine.ts';
import { written } from '../policies/policy-checking.ts';
import type { PolicyGateways } from './policy-gateway.ts';
import type { PolicySets } from './policy-sets.ts';

export interface PolicyProblemsDeps {
  database: Pick<Database, 'query'>;
  sets: Pick<PolicySets, 'use'>;
  gateways: PolicyGateways;
}

/** What is wrong with policies at the gateways that are attached to their engine, as it is now: tools change, and policies with them do not. */
export class PolicyProblems {
  readonly #deps: PolicyProblemsDeps;

  constructor(deps: PolicyProblemsDeps) {
    this.#deps = deps;
  }

  /** For each policy that has problems, by its id. */
  async byPolicy({ arn }: Engine): Promise<ReadonlyMap<string, string[]>> {
    const { database, gateways, sets } = this.#deps;
    const found = new Map<string, string[]>();
    for (const gatewayArn of await gatewaysOf(arn, database)) {
      const gateway = await gateways.find(gatewayArn, arn);
      if (!gateway) continue;
      const broken = await sets.use(gateway, async ({ set }) => set.broken).catch((error: unknown) => errorOf(error));
      if (typeof broken === 'string') found.set('', [...(found.get('') ?? []), `${gateway.id}: ${broken}`]);
      else
        for (const { id, problems } of broken)
          found.set(id, [
            ...(found.get(id) ?? []),
            ...problems.map((one) => `It does not fit the tools of the gateway ${gateway.id}: ${written(one)}`),
          ]);
    }
    return found;
  }

  async ofEngine(engine: Engine): Promise<string[]> {
    const problems = await this.byPolicy(engine);
    return [...problems].flatMap(([id, said]) => (id === '' ? said : said.map((one) => `${id}: ${one}`)));
  }
}

function errorOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
