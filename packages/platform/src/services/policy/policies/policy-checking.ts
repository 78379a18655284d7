import type { control } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { JobRun, Jobs } from '../../../kernel/jobs/index.ts';
import { type Database, MissingResourceError } from '../../../kernel/storage/index.ts';
import { number, object, stored, text } from '../../../kernel/stored-shape.ts';
import type { PolicyGateway, PolicyGateways } from '../decisions/policy-gateway.ts';
import { candidatesOf, type Deciding, loadSet, unloadSet } from '../decisions/policy-set.ts';
import type { PolicySets } from '../decisions/policy-sets.ts';
import type { Diagnostic, PolicyEvaluator } from '../engine/door.ts';
import { type Engines, gatewaysOf } from '../engines/engines.ts';
import { engineArnOf } from '../engines/policy-engine.ts';
import type { Checking, Policies } from './policies.ts';
import { type Policy, type PolicyText, policyFrom } from './policy.ts';
import { concerns, scopesOf } from './policy-scope.ts';

/** What an analysis says of a policy. */
export interface AnalysisFinding {
  /** SHADOWED: it changes no decision, since others decide all that it is about. OPEN_TOOLS: it permits every call of some tools, which is told and no reason against it. */
  type: control.FindingType | 'SHADOWED' | 'OPEN_TOOLS';
  description: string;
}

/** How long an analysis may take, and what calls it off. */
export interface Within {
  timeoutMs: number;
  signal: AbortSignal;
}

/** Analyses a policy among the others of its engine at one gateway. `notAnalysed`: why it could not, with the remedy. */
export type Analyse = (
  schema: string,
  policy: PolicyText & { id: string },
  others: readonly (PolicyText & { id: string })[],
  within: Within,
) => Promise<{ findings: AnalysisFinding[]; notAnalysed?: string | undefined }>;

export interface PolicyCheckingDeps {
  database: Database;
  jobs: Jobs;
  evaluator: PolicyEvaluator;
  engines: Pick<Engines, 'endSessions'>;
  policies: Policies;
  sets: Pick<PolicySets, 'schemaOf'>;
  gateways: PolicyGateways;
  analyse: Analyse;
  log: Logger;
}

/** What a check found: reasons against the policy, and what is to be said of one that is taken. */
export interface Checked {
  refused: string[];
  notes: string[];
  temporal: boolean;
}

const TIMEOUT_SECONDS = 120;
/** Of one policy, at all gateways. */
const ANALYSIS_MS = 60_000;
const MOST_REASONS = 50;
const LONGEST_REASON = 2_000;

/** Checks policies in the background: those of one engine one after the other, so that each is checked among those before it. */
export class PolicyChecking {
  readonly #deps: PolicyCheckingDeps;

  constructor(deps: PolicyCheckingDeps) {
    this.#deps = deps;
    deps.policies.checkBy(
      deps.jobs.define<Checking>('policy-check', {
        ...stored<Checking>(object({ arn: text, revision: number })),
        run: (job) => this.#run(job),
        giveUp: (job) =>
          this.#end(job.data, {
            ...{
              refused: ['The policy could not be checked; the log of the platform says why.'],
              notes: [],
              temporal: true,
            },
          }),
        ...{ retries: 1, retryDelay: 2, concurrency: 2, timeout: TIMEOUT_SECONDS },
      }),
    );
  }

  /** What is to be said of a text as a policy of that engine. `validate`: findings of the analysis are reasons against it. */
  async #check(
    { id, engineArn, accountId }: Pick<Policy, 'id' | 'engineArn' | 'accountId'>,
    text: PolicyText,
    validationMode: control.PolicyValidationMode,
    signal: AbortSignal,
  ): Promise<Checked> {
    const scopes = scopesOf(text.text);
    if (scopes.length !== 1) return { refused: [severalStatements(scopes.length)], notes: [], temporal: false };
    const gateways = await this.#gatewaysFor(engineArn, scopes[0]?.gateway);
    if (typeof gateways === 'string') return { refused: [gateways], notes: [], temporal: false };
    const checked: Checked = { refused: [], notes: [], temporal: false };
    for (const gateway of gateways) {
      const candidate = { id, live: text, enforcementMode: 'ACTIVE' as const };
      const problems = await this.#typeCheck(gateway, candidate);
      checked.temporal ||= problems.temporal;
      checked.refused.push(...problems.found.map(written));
      if (problems.found.length > 0) continue;
      const { findings, notAnalysed } = await this.#analyse(
        gateway,
        { id, ...text },
        { engineArn, accountId },
        { timeoutMs: ANALYSIS_MS / gateways.length, signal },
      );
      for (const { type, description } of findings.filter((one) => one.type !== 'VALID')) {
        const against = validationMode === 'FAIL_ON_ANY_FINDINGS' && type !== 'OPEN_TOOLS';
        checked[against ? 'refused' : 'notes'].push(`${type}: ${description}`);
      }
      if (notAnalysed !== undefined) checked.notes.push(`Not analysed: ${notAnalysed}`);
    }
    if (gateways.length === 0)
      checked.notes.push('No gateway is attached to its engine yet: the policy is checked against tools once one is.');
    return { ...checked, refused: [...new Set(checked.refused)], notes: [...new Set(checked.notes)] };
  }

  /** What is to be said of a draft for one gateway; `engine`: analysed within that among the policies of that one. */
  async draft(
    text: PolicyText,
    gateway: PolicyGateway,
    engine: ({ arn: string; accountId: string } & Within) | undefined,
  ): Promise<{ refused: string[]; findings: control.Finding[] }> {
    const scopes = scopesOf(text.text);
    if (scopes.length !== 1) return { refused: [severalStatements(scopes.length)], findings: [] };
    const id = 'draft';
    const { found } = await this.#typeCheck(gateway, { id, live: text, enforcementMode: 'ACTIVE' });
    if (found.length > 0 || !engine) return { refused: found.map(written), findings: [] };
    const among = { engineArn: engine.arn, accountId: engine.accountId };
    const { findings, notAnalysed } = await this.#analyse(gateway, { id, ...text }, among, engine);
    return {
      refused: [],
      findings: [
        ...findings.map(({ type, description }) =>
          type === 'SHADOWED' || type === 'OPEN_TOOLS'
            ? { description: `${type}: ${description}` }
            : { type, description },
        ),
        ...(notAnalysed === undefined ? [] : [{ description: `Not analysed: ${notAnalysed}` }]),
      ],
    };
  }

  async #run({ data, signal }: JobRun<Checking>): Promise<void> {
    const found = await this.#deps.policies.store.get(data.arn);
    if (found?.data.revision !== data.revision || !found.data.wanted) return;
    const policy = policyFrom(found);
    const { wanted, validationMode } = found.data;
    const checked = await this.#check(policy, wanted, validationMode, signal);
    // What was called off is checked anew, by whoever has the job then.
    signal.throwIfAborted();
    await this.#end(data, checked);
  }

  /** Ends a check. A policy that is gone or wanted otherwise by now stays as it is. */
  async #end({ arn, revision }: Checking, { refused, notes, temporal }: Checked): Promise<void> {
    const { database, policies, engines } = this.#deps;
    const statusReasons = (refused.length > 0 ? refused : notes)
      .slice(0, MOST_REASONS)
      .map((reason) => reason.slice(0, LONGEST_REASON));
    await database.transaction(async (tx) => {
      const store = policies.store.within(tx);
      const current = await store.get(arn);
      if (!current || current.data.revision !== revision || !current.data.wanted) return;
      const { live, wanted } = current.data;
      const data =
        refused.length > 0
          ? { ...current.data, status: live ? ('UPDATE_FAILED' as const) : ('CREATE_FAILED' as const), statusReasons }
          : { ...current.data, live: wanted, wanted: undefined, status: 'ACTIVE' as const, statusReasons };
      try {
        await store.update(arn, current.version, data);
      } catch (error) {
        if (error instanceof MissingResourceError) return;
        throw error;
      }
      const other = JSON.stringify(live) !== JSON.stringify(wanted);
      if (refused.length === 0 && temporal && other) await engines.endSessions(engineArnOf(arn), tx);
    });
  }

  /** The gateways that a policy is checked against: the one that it names, else those that are attached. A text says why there is none. */
  async #gatewaysFor(engineArn: string, named: string | undefined): Promise<PolicyGateway[] | string> {
    const { gateways, database } = this.#deps;
    if (named !== undefined) {
      const gateway = await gateways.find(named, engineArn);
      return gateway ? [gateway] : `There is no gateway ${named}. Make it first, or correct the ARN.`;
    }
    const found = await Promise.all(
      (await gatewaysOf(engineArn, database)).map((arn) => gateways.find(arn, engineArn)),
    );
    return found.filter((gateway) => gateway !== undefined);
  }

  async #typeCheck(gateway: PolicyGateway, candidate: Deciding): Promise<{ found: Diagnostic[]; temporal: boolean }> {
    const { evaluator, sets } = this.#deps;
    const schema = sets.schemaOf(gateway);
    const set = await loadSet(evaluator, `${gateway.arn} check`, schema, candidatesOf([candidate], gateway.arn));
    await unloadSet(evaluator, set);
    return { found: set.broken.flatMap(({ problems }) => problems), temporal: set.loaded.temporal };
  }

  async #analyse(
    gateway: PolicyGateway,
    policy: PolicyText & { id: string },
    engine: { engineArn: string; accountId: string },
    within: Within,
  ): ReturnType<Analyse> {
    const { policies, sets, analyse } = this.#deps;
    const all = await policies.all({ arn: engine.engineArn, accountId: engine.accountId });
    const others = all.flatMap(({ id, live, enforcementMode }) =>
      live && enforcementMode === 'ACTIVE' && id !== policy.id && concerns(scopesOf(live.text), gateway.arn)
        ? [{ id, ...live }]
        : [],
    );
    return analyse(sets.schemaOf(gateway), policy, others, within);
  }
}

function severalStatements(count: number): string {
  return `A policy is one statement: this text has ${count}.`;
}

/** A problem for who wrote the policy: where it is, with the line and a caret. */
export function written({ message, line, column, excerpt, suggestion }: Diagnostic): string {
  const where = line === null ? '' : `line ${line}${column === null ? '' : `, column ${column}`}: `;
  const hint = suggestion === null ? '' : ` ${suggestion}`;
  return `${where}${message}${hint}${excerpt === null ? '' : `\n${excerpt}`}`;
}
