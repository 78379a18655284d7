import { ServiceError } from '@agentplatform/contract';
import { ProtocolError } from '@modelcontextprotocol/server';
import type { Clock } from '../../../kernel/clock.ts';
import type { JobQueue, JobRun, Jobs } from '../../../kernel/jobs/index.ts';
import { OutboundError } from '../../../kernel/outbound/index.ts';
import {
  type Database,
  type Executor,
  MissingResourceError,
  type ResourceStore,
} from '../../../kernel/storage/index.ts';
import { number, object, stored, text } from '../../../kernel/stored-shape.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { ListingConsents } from '../outbound/listing-consents.ts';
import { bytesOfOthers, readDocument, writeDocument, writeOffers } from '../tables.ts';
import { ToolError } from '../tool-error.ts';
import { type Problem, plainText } from '../tools/index.ts';
import { changedTools, compareTools, EVER_NEW } from './changed-tools.ts';
import type { Offers } from './offers.ts';
import { awaitsConsent, gatewayArnOf, type TargetData, targetFrom } from './target.ts';
import type { MadeTools } from './target-kind.ts';
import { kindOf, type TargetKinds } from './target-kinds.ts';
import { bytesOfOffers, type TargetQuota } from './target-quota.ts';

export interface TargetMakingDeps {
  database: Database;
  clock: Clock;
  jobs: Jobs;
  kinds: TargetKinds;
  store: ResourceStore<TargetData>;
  consents: ListingConsents;
  quota: TargetQuota;
  gatewayOf(arn: string): Promise<Gateway | undefined>;
  /** Told when tools were stored. */
  onTools(): void;
}

/** One revision of a target. */
interface Making {
  arn: string;
  revision: number;
}

/** As the wire has them. */
const MOST_REASONS = 100;
const LONGEST_REASON = 2048;
/** Of what all targets of one gateway offer: it is held in memory whole while the gateway is used. */
const MOST_BYTES = 64 * 1024 * 1024;
const TOO_MUCH: Problem = {
  severity: 'error',
  message: `All tools of a gateway together may have ${MOST_BYTES / 1024 / 1024} MiB as JSON. Put this target behind a gateway of its own, or give it a smaller document.`,
};
const TIMEOUT_SECONDS = 120;
const LOOK_AGAIN_MS = 2_000;

/** Makes the tools of targets in the background. */
export class TargetMaking {
  readonly #deps: TargetMakingDeps;
  readonly queue: JobQueue<Making>;

  constructor(deps: TargetMakingDeps) {
    this.#deps = deps;
    this.queue = deps.jobs.define<Making>('gateway-target', {
      ...stored<Making>(object({ arn: text, revision: number })),
      run: (job) => this.#run(job),
      giveUp: (job, error) => this.#end(job.data, { problems: [failure(error)] }),
      ...{ retries: 1, retryDelay: 2, concurrency: 2, timeout: TIMEOUT_SECONDS },
    });
  }

  async #run(job: JobRun<Making>): Promise<void> {
    const { data, signal } = job;
    const { database, store, kinds, consents, gatewayOf } = this.#deps;
    const found = await store.get(data.arn);
    if (found?.data.revision !== data.revision || !found.data.wanted) return;
    const gateway = await gatewayOf(gatewayArnOf(data.arn));
    if (!gateway) return;
    const definition = found.data.wanted;
    if (awaitsConsent(found.data) && found.data.consent) {
      const state = await consents.stateOf(gateway, found.data.consent, definition, signal);
      if (state === 'awaited') return this.#later(job);
      if (state !== 'given') return this.#end(data, { problems: [{ severity: 'error', message: state.failure }] });
    }
    const document = await readDocument(database, data.arn);
    const source = { gateway, target: targetFrom(found), definition, document, signal };
    await this.#end(data, await kindOf(definition, kinds).makeTools(source));
  }

  /** Looks again in a moment whether the person has consented. */
  async #later({ data, end }: JobRun<Making>): Promise<void> {
    const startAfter = new Date(this.#deps.clock.now() + LOOK_AGAIN_MS);
    await this.#deps.database.transaction(async (tx) => {
      if (await end(tx)) await this.queue.enqueue(data, { key: data.arn, startAfter, within: tx });
    });
  }

  /** Ends the making: with the tools there are, or with none and the reasons. A target that is gone or wanted otherwise by now stays as it is. */
  async #end({ arn, revision }: Making, made: Partial<MadeTools> & Pick<MadeTools, 'problems'>): Promise<void> {
    const { database, store, clock, quota } = this.#deps;
    const { tools = [], prompts = [], resources = [], templates = [], problems: found } = made;
    const offers: Offers = { tools, prompts, resources, templates };
    const { accountId } = (await store.get(arn)) ?? {};
    if (accountId === undefined) return;
    await database.transaction(async (tx) => {
      await quota.lock(accountId, tx);
      const current = await store.within(tx).get(arn);
      if (!current || current.data.revision !== revision) return;
      const { live, wanted, status, consent } = current.data;
      const empty = Object.values(offers).every(({ length }) => length === 0);
      const compared =
        empty && found.some(isError)
          ? undefined
          : await compareTools(tx, arn, { tools: offers.tools, byOwner: !BY_ITSELF.includes(status) });
      const json = Buffer.byteLength(JSON.stringify(offers));
      const bytes = bytesOfOffers(offers, json);
      const tooMuch = empty ? undefined : await this.#tooMuch(current, { json, bytes }, tx);
      const failed = compared === undefined || tooMuch !== undefined;
      const refused = tooMuch ? [tooMuch] : failed && !empty ? [EVER_NEW] : [];
      const problems = [...refused, ...(compared ?? (await changedTools(tx, arn))), ...found];
      const data: TargetData = failed
        ? { ...current.data, live, wanted, status: FAILED[status] ?? 'FAILED', statusReasons: reasons(problems) }
        : {
            ...{ live: wanted, status: 'READY', statusReasons: reasons(problems), revision, bytes },
            ...{ synchronizedAt: clock.now(), consent: consent && { userId: consent.userId } },
          };
      try {
        await store.within(tx).update(arn, current.version, data);
      } catch (error) {
        if (error instanceof MissingResourceError) return;
        throw error;
      }
      if (!failed) await writeOffers(tx, arn, offers);
      await writeDocument(tx, arn, undefined);
    });
    this.#deps.onTools();
  }

  /** Why a gateway or its account cannot have so much. */
  async #tooMuch(
    { arn, accountId }: { arn: string; accountId: string },
    { json, bytes }: { json: number; bytes: number },
    tx: Executor,
  ): Promise<Problem | undefined> {
    const ofGateway = json + (await bytesOfOthers(tx, gatewayArnOf(arn), arn));
    return ofGateway > MOST_BYTES ? TOO_MUCH : this.#deps.quota.problem({ arn, accountId }, bytes, tx);
  }
}

const FAILED: Partial<Record<TargetData['status'], TargetData['status']>> = {
  CREATING: 'FAILED',
  UPDATING: 'UPDATE_UNSUCCESSFUL',
  SYNCHRONIZING: 'SYNCHRONIZE_UNSUCCESSFUL',
  CREATE_PENDING_AUTH: 'FAILED',
  UPDATE_PENDING_AUTH: 'UPDATE_UNSUCCESSFUL',
  SYNCHRONIZE_PENDING_AUTH: 'SYNCHRONIZE_UNSUCCESSFUL',
};

/** What is made then is not what the owner has seen. */
const BY_ITSELF: readonly TargetData['status'][] = ['SYNCHRONIZING', 'SYNCHRONIZE_PENDING_AUTH'];

function isError({ severity }: Problem): boolean {
  return severity === 'error';
}

function failure(error: unknown): Problem {
  if (error instanceof ProtocolError)
    return { severity: 'error', message: `The server refuses to tell what it offers. It says: ${error.message}` };
  const known = error instanceof ServiceError || error instanceof ToolError || error instanceof OutboundError;
  return {
    severity: 'error',
    message: known ? error.message : 'The tools could not be made; the log of the platform says why.',
  };
}

/** Errors before warnings; what does not fit is counted. */
function reasons(problems: readonly Problem[]): string[] {
  const sorted = problems.toSorted((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning'));
  const texts = sorted.map(({ message, where, line }) => {
    const at = [where, line === undefined ? undefined : `line ${line}`].filter((one) => one !== undefined).join(', ');
    // Some of it was written by backends: not every text can be stored.
    return plainText(at === '' ? message : `${at}: ${message}`, LONGEST_REASON);
  });
  if (texts.length <= MOST_REASONS) return texts;
  return [...texts.slice(0, MOST_REASONS - 1), `… and ${texts.length - MOST_REASONS + 1} more`];
}
