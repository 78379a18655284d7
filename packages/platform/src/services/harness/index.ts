import { join } from 'node:path';
import type { OperationCalls } from '../../kernel/http/index.ts';
import { ModelTokens } from '../../kernel/models/index.ts';
import type { Topics } from '../../kernel/notifications/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { SessionPlan, SessionRow, Sessions } from '../../kernel/sessions/index.ts';
import type { FunctionCaller } from '../functions/index.ts';
import type { MemoryPort } from '../memory/index.ts';
import { ConversationStore } from './conversations/conversation-store.ts';
import { HarnessImage, type HarnessImageDeps } from './harness-image.ts';
import {
  HARNESS_ENDPOINT_KIND,
  HARNESS_KIND,
  HARNESS_VERSION_KIND,
  harnessArnOf,
  type VersionOfHarness,
} from './harnesses/harness.ts';
import { HarnessEndpoints, type HarnessEndpointsDeps } from './harnesses/harness-endpoints.ts';
import {
  type HarnessOperation,
  type HarnessOperationsDeps,
  harnessOperations,
} from './harnesses/harness-operations.ts';
import { HarnessStore, type HarnessStoreDeps } from './harnesses/harness-store.ts';
import { Harnesses, type HarnessesDeps } from './harnesses/harnesses.ts';
import { HarnessInvocations } from './invoke-harness.ts';
import { HarnessModels, type HarnessModelsDeps } from './models/harness-models.ts';
import { type HarnessPlanDeps, harnessPlan } from './session-plan.ts';
import type { HarnessRoleDeps } from './tools/harness-role.ts';
import { SessionsOfTools } from './tools/sessions-of-tools.ts';
import { ToolServers, type ToolServersDeps } from './tools/tool-servers.ts';

export { HARNESS_OPERATIONS, type HarnessOperation } from './harnesses/harness-operations.ts';
export { harnessMigrations, harnessRetention } from './tables.ts';

export interface HarnessServiceDeps
  extends HarnessStoreDeps,
    HarnessModelsDeps,
    HarnessPlanDeps,
    Omit<HarnessImageDeps, 'sourceDir' | 'recordDir'>,
    Omit<HarnessesDeps, 'store' | 'prepare' | 'sessions' | 'memories' | 'topics'>,
    Omit<ToolServersDeps, 'sessions'>,
    Pick<HarnessEndpointsDeps, 'quotas'>,
    Pick<HarnessOperationsDeps, 'paginator' | 'verifyToken' | 'takeInvocation'> {
  sessions: Sessions;
  memory: Pick<MemoryPort, 'memories'>;
  functions: FunctionCaller;
  topics: Topics;
  newUuid(): string;
  calls: OperationCalls;
  roles: HarnessRoleDeps;
  quotas: HarnessesDeps['quotas'] & HarnessEndpointsDeps['quotas'];
  dataDir: string;
  /** Whether the image is made when the service starts. */
  prepare: boolean;
}

export interface HarnessPort {
  /** How to watch a session that survived a restart; undefined when its harness is gone. */
  planOf(row: SessionRow): Promise<SessionPlan | undefined>;
  /** Digests of images that sessions are made from. */
  imagesInUse(): Promise<string[]>;
  tokens: ModelTokens;
}

/** States of a version for which something is being made. */
const PREPARING: ReadonlySet<string> = new Set(['CREATING', 'UPDATING']);

const SOURCE = join(import.meta.dirname, '../../../../../images/harness');

/** Harnesses: agents from configuration alone (spec: Harness). */
export function createHarnessService(deps: HarnessServiceDeps): Service<HarnessOperation, HarnessPort> {
  const image = new HarnessImage({ ...deps, sourceDir: SOURCE, recordDir: join(deps.dataDir, 'images', 'harness') });
  const store = new HarnessStore(deps);
  const planFor = async (version: VersionOfHarness): Promise<SessionPlan> =>
    harnessPlan(version, await image.make(), deps);
  const prepareVersion = async (version: VersionOfHarness, signal: AbortSignal): Promise<void> => {
    const plan = await planFor(version).catch((error: unknown) => {
      throw failedPart('The sandbox image', error);
    });
    if (deps.pooled > 0)
      await deps.sessions.pool.prepare(plan, signal).catch((error: unknown) => {
        throw failedPart('The session', error);
      });
  };
  const harnesses = new Harnesses({
    ...{ ...deps, store, prepare: prepareVersion },
    memories: deps.memory.memories,
    topics: deps.topics.arns,
  });
  const endpoints = new HarnessEndpoints({ ...deps, harnesses, store });
  const models = new HarnessModels(deps);
  const tokens = new ModelTokens();
  const invocations = new HarnessInvocations({
    ...deps,
    ...{ planFor, models, conversations: new ConversationStore(deps), hooks: deps },
    servers: new ToolServers({ ...deps, sessions: new SessionsOfTools() }),
    onUsage: (model, usage) => tokens.add(model, usage),
  });
  /** What stands ready for versions that no endpoint leads to is of no use; nor are sessions of what another server deleted. */
  const settle = async (arn: string): Promise<void> => {
    const family = await store.family(arn);
    if (!family) return deps.sessions.stopAll(arn, 'deleted');
    const live = family.endpoints.flatMap(({ liveVersion }) => liveVersion ?? []);
    // What was made for a version that is about to be live is for its first session.
    const coming = family.versions.flatMap(({ version, status }) => (PREPARING.has(status) ? version : []));
    deps.sessions.pool.retain(arn, family.harness.deleting ? [] : [...live, ...coming].map(String));
  };
  deps.changes.subscribe([HARNESS_KIND, HARNESS_VERSION_KIND, HARNESS_ENDPOINT_KIND], async (changed) => {
    const live = deps.sessions
      .all()
      .flatMap(({ row }) => (row.resourceArn.includes(':harness/') ? [row.resourceArn] : []));
    const arns = changed === 'all' ? live : changed.map(({ key }) => harnessArnOf(key));
    for (const arn of new Set(arns))
      settle(arn).catch((error: unknown) => deps.log.debug({ err: error }, 'a harness that changed was not looked at'));
  });
  return {
    operations: harnessOperations({ ...deps, harnesses, endpoints, store, invocations }),
    port: {
      async planOf(row) {
        const family = await store.family(row.resourceArn);
        const version = family?.versions.find((one) => String(one.version) === row.version);
        return family && version && harnessPlan({ ...version, harness: family.harness }, undefined, deps);
      },
      imagesInUse: () => image.digests(),
      tokens,
    },
    async start() {
      if (deps.prepare) image.make().catch(() => undefined);
      await harnesses.resume();
    },
    async stop() {
      await image.close();
      await harnesses.close();
    },
  };
}

/** Says which part of a harness could not be had. */
function failedPart(part: string, error: unknown): Error {
  return new Error(`${part} could not be made: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
