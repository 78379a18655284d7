import type { Logger } from 'pino';
import type { JobRun, Jobs } from '../../../kernel/jobs/index.ts';
import { type Model, ModelError, type ModelMessage } from '../../../kernel/models/index.ts';
import { object, stored, text } from '../../../kernel/stored-shape.ts';
import type { PolicyGateway, PolicyGateways } from '../decisions/policy-gateway.ts';
import type { PolicySets } from '../decisions/policy-sets.ts';
import type { PolicyChecking, Within } from '../policies/policy-checking.ts';
import type { GeneratedAsset } from './generation.ts';
import type { Generations } from './generations.ts';
import { ANSWER_SCHEMA, type Drafted, readAnswer, repairPrompt, systemPrompt } from './prompt.ts';

export interface GeneratingDeps {
  jobs: Jobs;
  generations: Generations;
  gateways: PolicyGateways;
  sets: Pick<PolicySets, 'schemaOf'>;
  checking: Pick<PolicyChecking, 'draft'>;
  model: Model | undefined;
  newIdSuffix(): string;
  log: Logger;
}

/** Times that a model is asked: the first, and with what the validator says of its answer. */
const MOST_ASKED = 4;
const TIMEOUT_SECONDS = 300;
const MOST_TOKENS = 8_000;
/** Of all policies of a sentence. */
const ANALYSIS_MS = 60_000;

/** Has a model write policies of a sentence, in the background, repairs them from what the validator says, and has them analysed. */
export class Generating {
  readonly #deps: GeneratingDeps;

  constructor(deps: GeneratingDeps) {
    this.#deps = deps;
    deps.generations.makeBy(
      deps.jobs.define<{ arn: string }>('policy-generation', {
        ...stored<{ arn: string }>(object({ arn: text })),
        run: (job) => this.#run(job),
        giveUp: (job, error) => deps.generations.end(job.data.arn, { reasons: [failureOf(error)] }),
        ...{ retries: 1, retryDelay: 2, concurrency: 2, timeout: TIMEOUT_SECONDS },
      }),
    );
  }

  async #run({ data, signal }: JobRun<{ arn: string }>): Promise<void> {
    const { generations, gateways, model } = this.#deps;
    const found = await generations.store.get(data.arn);
    if (found?.data.status !== 'GENERATING') return;
    const gateway = await gateways.find(found.data.gatewayArn, found.parent);
    if (!gateway) return generations.end(data.arn, { reasons: ['The gateway is gone.'] });
    if (!model) return generations.end(data.arn, { reasons: ['The model is gone: set models.url or policy.model.'] });
    const drafts = await this.#write(model, gateway, found.data.sentence, signal);
    if (!drafts) return generations.end(data.arn, { reasons: ['The model gave no policies. Say it in other words.'] });
    const within = { timeoutMs: ANALYSIS_MS / drafts.length, signal };
    const engine = { arn: found.parent, accountId: found.accountId, ...within };
    const assets: GeneratedAsset[] = [];
    for (const [i, draft] of drafts.entries()) assets.push(await this.#assetOf(draft, i, engine, gateway));
    await generations.end(data.arn, { assets });
  }

  /** Asks until every policy fits the tools, a bounded number of times; the last answer counts, also where some do not. */
  async #write(
    model: Model,
    gateway: PolicyGateway,
    sentence: string,
    signal: AbortSignal,
  ): Promise<Drafted[] | undefined> {
    const { sets, checking } = this.#deps;
    const system = systemPrompt(gateway.arn, sets.schemaOf(gateway));
    const messages: ModelMessage[] = [{ role: 'user', content: [{ type: 'text', text: sentence }] }];
    let last: Drafted[] | undefined;
    for (let asked = 1; asked <= MOST_ASKED; asked++) {
      const request = { system, messages, maxTokens: MOST_TOKENS, json: { schema: ANSWER_SCHEMA, name: 'policies' } };
      const { content } = await model.generate(request, signal);
      const said = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
      const drafts = readAnswer(said);
      const problems = drafts
        ? await problemsOf(drafts, gateway, checking)
        : ['The answer is not the JSON that was asked for.'];
      last = drafts ?? last;
      if (problems.length === 0) return drafts;
      messages.push(
        { role: 'assistant', content: [{ type: 'text', text: said }] },
        { role: 'user', content: [{ type: 'text', text: repairPrompt(problems) }] },
      );
    }
    return last;
  }

  async #assetOf(
    { fragment, statement }: Drafted,
    index: number,
    engine: { arn: string; accountId: string } & Within,
    gateway: PolicyGateway,
  ): Promise<GeneratedAsset> {
    const id = `asset_${index + 1}-${this.#deps.newIdSuffix().toLowerCase()}`;
    if (statement === undefined)
      return {
        id,
        fragment,
        findings: [{ type: 'NOT_TRANSLATABLE', description: 'The tools have nothing that says this.' }],
      };
    const policy = { language: languageOf(statement), text: statement };
    const { refused, findings } = await this.#deps.checking.draft(policy, gateway, engine);
    if (refused.length > 0)
      return { id, fragment, policy, findings: [{ type: 'INVALID', description: refused.join('\n') }] };
    return { id, fragment, policy, findings };
  }
}

async function problemsOf(
  drafts: readonly Drafted[],
  gateway: PolicyGateway,
  checking: Pick<PolicyChecking, 'draft'>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { statement } of drafts) {
    if (statement === undefined) continue;
    const { refused } = await checking.draft({ language: languageOf(statement), text: statement }, gateway, undefined);
    problems.push(...refused.map((reason) => `${statement}\n${reason}`));
  }
  return problems;
}

function languageOf(statement: string): 'cedar' | 'dogwood' {
  return /\bwhen\s+(?:temporal|guardrails)\b/.test(statement) ? 'dogwood' : 'cedar';
}

function failureOf(error: unknown): string {
  return error instanceof ModelError
    ? `The model could not be asked: ${error.message}`
    : 'The policies could not be made; the log of the platform says why.';
}
