import { type control, errors } from '@agentplatform/contract';
import { checkPassedRole } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { NamedNetworks } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Sessions } from '../../kernel/sessions/index.ts';
import { type Database, fromResource, nameTaken, ResourceStore } from '../../kernel/storage/index.ts';
import { object, orAbsent, stored, text, wire } from '../../kernel/stored-shape.ts';
import { BUILT_IN, INTERPRETER_KIND, type Interpreter, interpreterArn } from './interpreter.ts';

export interface InterpretersDeps {
  database: Database;
  sessions: Sessions;
  networks: Pick<NamedNetworks, 'check'>;
  /** Mode of the built-in interpreter. */
  builtInNetwork: 'PUBLIC' | 'SANDBOX';
  roleExists(roleArn: string): Promise<boolean>;
  clock: Clock;
  newIdSuffix(): string;
  region: string;
}

type Kept = Pick<Interpreter, 'description' | 'executionRoleArn' | 'network'>;

const KEPT = stored<Kept>(
  object({ network: wire<Kept['network']>(), description: orAbsent(text), executionRoleArn: orAbsent(text) }),
);

/** The date that the built-in interpreter says it was made: it was always there. */
const ALWAYS = Date.UTC(2025, 0, 1);

/** Code interpreters: the built-in one, and those that accounts make. */
export class Interpreters {
  readonly #deps: InterpretersDeps;
  readonly #store: ResourceStore<Kept>;

  constructor(deps: InterpretersDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<Kept>({
      executor: deps.database,
      clock: deps.clock,
      kind: INTERPRETER_KIND,
      ...KEPT,
    });
  }

  /** CreateCodeInterpreter. Refuses what would be ignored: a network that is not there, certificates, mounts. */
  async create(call: control.CreateCodeInterpreterRequest, ctx: RequestContext): Promise<Interpreter> {
    const { newIdSuffix, region, networks } = this.#deps;
    refuseUnsupported(call);
    networks.check(call.networkConfiguration);
    if (call.executionRoleArn !== undefined)
      await checkPassedRole(ctx, { roleArn: call.executionRoleArn, field: 'executionRoleArn' }, this.#deps);
    const id = `${call.name}-${newIdSuffix()}`;
    try {
      const made = await this.#store.create({
        arn: interpreterArn(id, region, ctx.accountId),
        accountId: ctx.accountId,
        id,
        name: call.name,
        data: {
          description: call.description,
          executionRoleArn: call.executionRoleArn,
          network: call.networkConfiguration,
        },
        tags: call.tags ?? {},
      });
      return fromResource(made);
    } catch (error) {
      throw nameTaken(error, 'A code interpreter', 'Delete it, or choose another name.');
    }
  }

  /** The interpreter of this id as an account sees it. Rejects with ResourceNotFoundException. */
  async get(id: string, accountId: string): Promise<Interpreter> {
    if (id === BUILT_IN) return this.builtIn(accountId);
    const found = await this.#store.get(interpreterArn(id, this.#deps.region, accountId));
    if (found) return fromResource(found);
    throw errors.resourceNotFound(`There is no code interpreter ${id.slice(0, 100)} in this account.`, {
      remedy: `ListCodeInterpreters lists those that exist; ${BUILT_IN} is always there.`,
    });
  }

  builtIn(accountId: string): Interpreter {
    return {
      arn: interpreterArn(BUILT_IN, this.#deps.region, accountId),
      id: BUILT_IN,
      accountId,
      name: BUILT_IN,
      description: 'Runs Python, JavaScript and TypeScript in an isolated session.',
      executionRoleArn: undefined,
      network: { networkMode: this.#deps.builtInNetwork },
      createdAt: ALWAYS,
      updatedAt: ALWAYS,
    };
  }

  /** Own interpreters in the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    page: { limit: number; after: string | undefined },
  ): Promise<{ items: Interpreter[]; next: string | undefined }> {
    const { limit, after } = page;
    const found = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: found.items.map(fromResource), next: found.next };
  }

  /** Ends the sessions here of those of these interpreters that are no more. Rejects with the database's error. */
  async endDeleted(arns: Iterable<string>): Promise<void> {
    for (const arn of arns) if (!(await this.#store.get(arn))) await this.#deps.sessions.stopAll(arn, 'deleted');
  }

  /** DeleteCodeInterpreter: its sessions end with it. */
  async delete(id: string, accountId: string): Promise<void> {
    if (id === BUILT_IN) throw errors.validation(`${BUILT_IN} is built in and cannot be deleted.`);
    const { arn } = await this.get(id, accountId);
    await this.#store.delete(arn);
    await this.#deps.sessions.stopAll(arn, 'deleted');
  }
}

/** Settings of the wire that nothing here would heed are refused rather than forgotten. */
export function refuseUnsupported(call: {
  certificates?: readonly unknown[];
  filesystemConfigurations?: readonly unknown[];
}): void {
  for (const field of ['certificates', 'filesystemConfigurations'] as const) {
    if ((call[field]?.length ?? 0) > 0)
      throw errors.invalidField(field, 'is not supported by this platform yet', {
        remedy: 'Leave it out and bring files in by writeFiles.',
      });
  }
}
