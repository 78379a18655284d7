import { type control, errors } from '@agentplatform/contract';
import { checkPassedRole } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ObjectWriter } from '../../kernel/objects/index.ts';
import type { NamedNetworks } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Sessions } from '../../kernel/sessions/index.ts';
import { type Database, fromResource, nameTaken, ResourceStore } from '../../kernel/storage/index.ts';
import { object, orAbsent, stored, text, wire } from '../../kernel/stored-shape.ts';
import { BROWSER_KIND, type Browser, type BrowserDefinition, BUILT_IN, browserArn } from './browser.ts';
import { recordingPlace } from './recording/recordings.ts';
import { refuseUnserved } from './unserved.ts';

export interface BrowsersDeps {
  database: Database;
  sessions: Sessions;
  networks: Pick<NamedNetworks, 'check'>;
  objects: Pick<ObjectWriter, 'hasBucket'>;
  roleExists(roleArn: string): Promise<boolean>;
  clock: Clock;
  newIdSuffix(): string;
  region: string;
}

const KEPT = stored<BrowserDefinition>(
  object({
    network: wire<BrowserDefinition['network']>(),
    description: orAbsent(text),
    executionRoleArn: orAbsent(text),
    recording: orAbsent(object({ bucket: text, prefix: text })),
  }),
);

/** The date that the built-in browser says it was made: it was always there. */
const ALWAYS = Date.UTC(2025, 0, 1);

/** Browsers: the built-in one, and those that accounts make. */
export class Browsers {
  readonly #deps: BrowsersDeps;
  readonly #store: ResourceStore<BrowserDefinition>;

  constructor(deps: BrowsersDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<BrowserDefinition>({
      executor: deps.database,
      clock: deps.clock,
      kind: BROWSER_KIND,
      ...KEPT,
    });
  }

  /** CreateBrowser. Refuses what would be ignored. */
  async create(call: control.CreateBrowserRequest, ctx: RequestContext): Promise<Browser> {
    const { newIdSuffix, region, networks } = this.#deps;
    refuseUnserved(call);
    networks.check(call.networkConfiguration);
    if (call.executionRoleArn !== undefined)
      await checkPassedRole(ctx, { roleArn: call.executionRoleArn, field: 'executionRoleArn' }, this.#deps);
    const recording = await recordingPlace(call.recording, ctx, this.#deps.objects);
    const id = `${call.name}-${newIdSuffix()}`;
    try {
      const made = await this.#store.create({
        arn: browserArn(id, region, ctx.accountId),
        accountId: ctx.accountId,
        id,
        name: call.name,
        data: {
          description: call.description,
          executionRoleArn: call.executionRoleArn,
          network: call.networkConfiguration,
          recording,
        },
        tags: call.tags ?? {},
      });
      return fromResource(made);
    } catch (error) {
      throw nameTaken(error, 'A browser', 'Delete it, or choose another name.');
    }
  }

  /** The browser of this id as an account sees it. Rejects with ResourceNotFoundException. */
  async get(id: string, accountId: string): Promise<Browser> {
    if (id === BUILT_IN) return this.builtIn(accountId);
    const found = await this.#store.get(browserArn(id, this.#deps.region, accountId));
    if (found) return fromResource(found);
    throw errors.resourceNotFound(`There is no browser ${id.slice(0, 100)} in this account.`, {
      remedy: `ListBrowsers lists those that exist; ${BUILT_IN} is always there.`,
    });
  }

  builtIn(accountId: string): Browser {
    return {
      arn: browserArn(BUILT_IN, this.#deps.region, accountId),
      id: BUILT_IN,
      accountId,
      name: BUILT_IN,
      description: 'Chromium in an isolated session, driven by CDP.',
      executionRoleArn: undefined,
      network: { networkMode: 'PUBLIC' },
      createdAt: ALWAYS,
      updatedAt: ALWAYS,
    };
  }

  /** Own browsers in the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<{ items: Browser[]; next: string | undefined }> {
    const found = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: found.items.map(fromResource), next: found.next };
  }

  /** Ends the sessions here of those of these browsers that are no more. Rejects with the database's error. */
  async endDeleted(arns: Iterable<string>): Promise<void> {
    for (const arn of arns) if (!(await this.#store.get(arn))) await this.#deps.sessions.stopAll(arn, 'deleted');
  }

  /** DeleteBrowser: its sessions end with it. */
  async delete(id: string, accountId: string): Promise<void> {
    if (id === BUILT_IN) throw errors.validation(`${BUILT_IN} is built in and cannot be deleted.`);
    const { arn } = await this.get(id, accountId);
    await this.#store.delete(arn);
    await this.#deps.sessions.stopAll(arn, 'deleted');
  }
}
