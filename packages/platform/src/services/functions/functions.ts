import { errors } from '@agentplatform/contract';
import { checkPassedRole, givenResources } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Caller } from '../../kernel/service.ts';
import {
  type Database,
  DuplicateResourceError,
  MissingResourceError,
  type Page,
  type Resource,
  ResourceStore,
} from '../../kernel/storage/index.ts';
import {
  FUNCTION_KIND,
  type FunctionData,
  type FunctionSettings,
  functionArn,
  noFunction,
  type PlatformFunction,
  storedFunction,
} from './function.ts';
import { codeSource, type FunctionImages } from './function-code.ts';
import { DEFAULTS, type Members, members, readSettings, refuseFields } from './function-fields.ts';

export interface FunctionsDeps {
  database: Database;
  clock: Clock;
  region: string;
  images: FunctionImages;
  /** What one sandbox may have here. */
  mostMemoryMiB: number;
  defaultRoleArn: string;
  roleExists(arn: string): Promise<boolean>;
  newIdSuffix(): string;
}

/** Who asks, and until when. */
export interface FunctionCallerContext extends Caller {
  signal: AbortSignal;
}

const SETTINGS = ['Description', 'Runtime', 'Handler', 'Role', 'Timeout', 'MemorySize', 'Environment'];
const CODE = ['ZipFile', 'S3Bucket', 'S3Key', 'S3ObjectVersion'];
const PACKAGE = ['PackageType', 'Architectures'];
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, string>> = { x64: 'x86_64', arm64: 'arm64' };
/** Of this machine. */
export const architecture = ARCHITECTURES[process.arch] ?? process.arch;

/** The functions of accounts, in the table `resources`. */
export class Functions {
  readonly #deps: FunctionsDeps;
  readonly #store: ResourceStore<FunctionData>;

  constructor(deps: FunctionsDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<FunctionData>({
      ...{ executor: deps.database, clock: deps.clock, kind: FUNCTION_KIND },
      ...storedFunction,
    });
  }

  /** CreateFunction. Rejects with ValidationException, ConflictException for a name that is taken, and AccessDeniedException for code or a role that is not the caller's to use. */
  async create(name: string, call: Members, caller: FunctionCallerContext): Promise<PlatformFunction> {
    const { region, images, defaultRoleArn } = this.#deps;
    const { accountId } = caller;
    refuseFields(call, ['FunctionName', 'Code', ...SETTINGS, ...PACKAGE]);
    checkPackage(call);
    const given = members('Code', call.Code);
    refuseFields(given, CODE, 'Code.');
    const settings = this.#whole({ role: defaultRoleArn, ...readSettings(call, this.#deps.mostMemoryMiB) });
    await checkPassedRole(caller, { roleArn: settings.role, field: 'Role' }, this.#deps);
    const memories = await this.#given(settings.environment, caller);
    const source = await codeSource(given, 'Code.', caller);
    const arn = functionArn({ region, accountId }, name);
    if (await this.#store.get(arn)) throw taken(name);
    const code = await images.make(source, settings.runtime, caller);
    try {
      const data: FunctionData = { ...settings, code, given: memories, revision: this.#deps.newIdSuffix() };
      return fromResource(await this.#store.create({ arn, accountId, id: name, name, data }));
    } catch (error) {
      throw error instanceof DuplicateResourceError ? taken(name, error) : error;
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async get(name: string, accountId: string): Promise<PlatformFunction> {
    const found = await this.find(functionArn({ region: this.#deps.region, accountId }, name));
    if (found) return found;
    throw noFunction(name);
  }

  /** By ARN; undefined where there is none. */
  async find(arn: string): Promise<PlatformFunction | undefined> {
    const found = await this.#store.get(arn);
    return found && fromResource(found);
  }

  async list(accountId: string, page: { limit: number; after?: string }): Promise<Page<PlatformFunction>> {
    const { items, ...next } = await this.#store.list({ accountId, ...page });
    return { items: items.map(fromResource), ...next };
  }

  /** UpdateFunctionCode: events from now on get sandboxes of the new code. Rejects as `create`, and with ResourceNotFoundException. */
  async updateCode(name: string, call: Members, caller: FunctionCallerContext): Promise<PlatformFunction> {
    refuseFields(call, ['FunctionName', 'RevisionId', 'Architectures', ...CODE]);
    checkPackage(call);
    const before = await this.get(name, caller.accountId);
    checkRevision(before, call);
    const source = await codeSource(call, '', caller);
    const code = await this.#deps.images.make(source, before.runtime, caller);
    return this.#change(before, call, (data) => ({ ...data, code }));
  }

  /** UpdateFunctionConfiguration: what is not named stays. Rejects as `updateCode`. */
  async updateSettings(name: string, call: Members, caller: FunctionCallerContext): Promise<PlatformFunction> {
    refuseFields(call, ['FunctionName', 'RevisionId', ...SETTINGS]);
    const before = await this.get(name, caller.accountId);
    checkRevision(before, call);
    const changed = readSettings(call, this.#deps.mostMemoryMiB);
    if (changed.runtime !== undefined && changed.runtime !== before.runtime)
      throw errors.invalidField('Runtime', `cannot be changed: the image of the code is one for ${before.runtime}`, {
        remedy: 'Delete the function and create it again.',
      });
    if (changed.role !== undefined) await checkPassedRole(caller, { roleArn: changed.role, field: 'Role' }, this.#deps);
    const given = changed.environment && (await this.#given(changed.environment, caller));
    return this.#change(before, call, (data) => ({ ...data, ...changed, ...(given && { given }) }));
  }

  /** Rejects with ResourceNotFoundException. */
  async delete(name: string, accountId: string): Promise<void> {
    const { arn } = await this.get(name, accountId);
    if (!(await this.#store.delete(arn))) throw noFunction(name);
  }

  /** Digests of all images that functions run on. */
  async imageDigests(): Promise<string[]> {
    const rows = await this.#deps.database.query<{ digest: string }>(
      `SELECT DISTINCT data->'code'->>'imageDigest' AS digest FROM resources WHERE kind = $1`,
      [FUNCTION_KIND],
    );
    return rows.map(({ digest }) => digest);
  }

  async #change(
    { name, arn }: PlatformFunction,
    call: Members,
    change: (data: FunctionData) => FunctionData,
  ): Promise<PlatformFunction> {
    try {
      const changed = await this.#store.modify(arn, ({ data }) => {
        checkRevision(data, call);
        return { ...change(data), revision: this.#deps.newIdSuffix() };
      });
      return fromResource(changed);
    } catch (error) {
      throw error instanceof MissingResourceError ? noFunction(name) : error;
    }
  }

  #given(environment: Record<string, string>, caller: Caller): Promise<string[]> {
    const { region } = this.#deps;
    return givenResources(caller, { texts: Object.values(environment), region, field: 'Environment' });
  }

  #whole({ runtime, handler, role = '', ...more }: Partial<FunctionSettings>): FunctionSettings {
    if (runtime === undefined) throw errors.invalidField('Runtime', 'must be given');
    if (handler === undefined) throw errors.invalidField('Handler', 'must be given');
    return { ...DEFAULTS, ...more, runtime, handler, role };
  }
}

function checkRevision({ revision }: Pick<FunctionData, 'revision'>, { RevisionId }: Members): void {
  if (RevisionId === undefined || RevisionId === null || RevisionId === revision) return;
  throw errors.conflict('The function is at another revision than RevisionId names.', {
    remedy: 'Read it again and repeat the call.',
  });
}

function checkPackage({ PackageType = 'Zip', Architectures }: Members): void {
  if (PackageType !== 'Zip') throw errors.invalidField('PackageType', 'must be Zip');
  if (
    Architectures === undefined ||
    (Array.isArray(Architectures) && Architectures.every((one) => one === architecture))
  )
    return;
  throw errors.invalidField('Architectures', `must be ["${architecture}"], which this machine has`);
}

function taken(name: string, cause?: unknown): Error {
  return errors.conflict(`There is a function ${name} already.`, {
    remedy: 'Update or delete it, or choose another name.',
    cause,
  });
}

function fromResource({ arn, accountId, name, data, version, ...at }: Resource<FunctionData>): PlatformFunction {
  const [createdAt, updatedAt] = [at.createdAt.getTime(), at.updatedAt.getTime()];
  return { ...data, arn, accountId, name, version, createdAt, updatedAt };
}
