import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { JobQueue } from '../../../kernel/jobs/index.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import { type Database, DuplicateResourceError, type Page, ResourceStore } from '../../../kernel/storage/index.ts';
import type { PolicyGateways } from '../decisions/policy-gateway.ts';
import { holdEngine } from '../engines/engines.ts';
import type { Engine } from '../engines/policy-engine.ts';
import type { PolicyText } from '../policies/policy.ts';
import { GENERATION_FIELDS } from '../policy-fields.ts';
import {
  GENERATION_KIND,
  type GeneratedAsset,
  type Generation,
  type GenerationData,
  generationFrom,
  storedGeneration,
} from './generation.ts';

export interface GenerationsDeps {
  database: Database;
  clock: Clock;
  region: string;
  gateways: PolicyGateways;
  /** Whether there is a model that writes policies. */
  hasModel: boolean;
  newIdSuffix(): string;
}

/** Of an engine; the oldest give way. */
const MOST_GENERATIONS = 200;
/** Of one engine, being made at the same time. */
const MOST_MAKING = 5;

/** The generations of engines. */
export class Generations {
  readonly #deps: GenerationsDeps;
  readonly store: ResourceStore<GenerationData>;
  #queue: JobQueue<{ arn: string }> | undefined;

  constructor(deps: GenerationsDeps) {
    this.#deps = deps;
    this.store = new ResourceStore<GenerationData>({
      ...{ executor: deps.database, clock: deps.clock, kind: GENERATION_KIND, most: MOST_GENERATIONS },
      ...storedGeneration,
    });
  }

  /** Who makes them. */
  makeBy(queue: JobQueue<{ arn: string }>): void {
    this.#queue = queue;
  }

  arnOf({ accountId, id }: Pick<Engine, 'accountId' | 'id'>, generationId: string): string {
    return resourceArn('policy-generation', { region: this.#deps.region, accountId }, id, generationId);
  }

  /** GENERATING until a model has answered. Rejects with ValidationException, also where there is no model, and with ConflictException. */
  async start(engine: Engine, input: control.StartPolicyGenerationRequest): Promise<Generation> {
    refuseUnserved(input, GENERATION_FIELDS);
    const { database, gateways, hasModel, newIdSuffix } = this.#deps;
    const queue = this.#queue;
    if (!hasModel || !queue)
      throw errors.validation('There is no model that writes policies.', {
        remedy: 'Set models.url, or name a model by policy.model, and start the server again.',
      });
    const { name, resource, content } = input;
    if (!(await gateways.find(resource.arn, engine.arn)))
      throw errors.invalidField('resource.arn', 'must be the ARN of a gateway of this account');
    const id = `${name}-${newIdSuffix().toLowerCase()}`;
    const { accountId, arn: parent } = engine;
    const data: GenerationData = {
      ...{ gatewayArn: resource.arn, sentence: content.rawText },
      ...{ status: 'GENERATING', statusReasons: [], assets: [] },
    };
    try {
      const made = await database.transaction(async (tx) => {
        await holdEngine(parent, tx);
        await tx.execute(
          `DELETE FROM resources WHERE arn IN (SELECT arn FROM resources WHERE account_id = $1 AND parent = $2 AND kind = $3
             AND data ->> 'status' <> 'GENERATING' ORDER BY seq DESC OFFSET $4)`,
          [accountId, parent, GENERATION_KIND, MOST_GENERATIONS - MOST_MAKING - 1],
        );
        const making = await tx.query(
          `SELECT FROM resources WHERE account_id = $1 AND parent = $2 AND kind = $3 AND data ->> 'status' = 'GENERATING'`,
          [accountId, parent, GENERATION_KIND],
        );
        if (making.length >= MOST_MAKING)
          throw errors.throttling(
            `${MOST_MAKING} generations of this engine are being made just now, which is the limit.`,
          );
        const row = { arn: this.arnOf(engine, id), accountId, id, name, data, parent };
        const created = await this.store.within(tx).create(row);
        await queue.enqueue({ arn: created.arn }, { within: tx });
        return generationFrom(created);
      });
      queue.look();
      return made;
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(`The policy engine ${engine.id} already has a generation named ${name}.`, {
        remedy: 'Choose another name.',
        cause: error,
      });
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async get(engine: Engine, id: string): Promise<Generation> {
    const found = await this.store.get(this.arnOf(engine, id));
    if (found) return generationFrom(found);
    throw errors.resourceNotFound(`The policy engine ${engine.id} has no generation ${id}.`, {
      remedy: 'ListPolicyGenerations lists those that exist.',
    });
  }

  /** The text of an asset. Rejects with ResourceNotFoundException and ValidationException. */
  async textOf(engine: Engine, named: control.PolicyGenerationDetails): Promise<PolicyText> {
    const { assets } = await this.get(engine, named.policyGenerationId);
    const asset = assets.find(({ id }) => id === named.policyGenerationAssetId);
    if (!asset)
      throw errors.resourceNotFound(`The generation ${named.policyGenerationId} has no such asset.`, {
        remedy: 'ListPolicyGenerationAssets lists those that exist.',
      });
    if (!asset.policy)
      throw errors.invalidField(
        'definition.policyGeneration.policyGenerationAssetId',
        'names an asset without a policy',
      );
    return asset.policy;
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    { accountId, arn: parent }: Engine,
    { limit, after }: { limit: number; after?: string | undefined },
  ): Promise<Page<Generation>> {
    const { items, ...next } = await this.store.list({
      ...{ accountId, parent, limit },
      ...(after !== undefined && { after }),
    });
    return { items: items.map(generationFrom), ...next };
  }

  /** Ends a generation that is still being made. */
  async end(arn: string, made: { assets: GeneratedAsset[] } | { reasons: string[] }): Promise<void> {
    const current = await this.store.get(arn);
    if (current?.data.status !== 'GENERATING') return;
    await this.store.modify(arn, ({ data }) =>
      'assets' in made
        ? { ...data, status: 'GENERATED', assets: made.assets }
        : { ...data, status: 'GENERATE_FAILED', statusReasons: made.reasons },
    );
  }
}
