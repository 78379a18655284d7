import { join } from 'node:path';
import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { ImagesRoom } from '../../kernel/images/index.ts';
import type { Preparations } from '../../kernel/preparations.ts';
import type { NamedNetworks, SandboxLimits, SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { Service } from '../../kernel/service.ts';
import { pingHealth, type SessionPlan, type SessionRow, type Sessions } from '../../kernel/sessions/index.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import { INTERPRETER_KIND, interpreterIdOf } from './interpreter.ts';
import { InterpreterImages } from './interpreter-images.ts';
import { InterpreterSessions, type InterpreterSessionsDeps } from './interpreter-sessions.ts';
import { Interpreters } from './interpreters.ts';
import { type CodeInterpreterOperation, codeInterpreterOperations } from './operations.ts';
import type { Variant } from './package-trees.ts';
import { SessionRecords } from './session-records.ts';

export { codeInterpreterRetention } from './retention.ts';
export { codeInterpreterMigrations } from './tables.ts';

export interface CodeInterpreterServiceDeps {
  database: Database;
  changes: Changes;
  images: ImagesRoom;
  provider: Pick<SandboxProvider, 'stage'>;
  sessions: Sessions;
  roleExists(roleArn: string): Promise<boolean>;
  paginator: Paginator;
  clock: Clock;
  newIdSuffix(): string;
  newSessionId(): string;
  region: string;
  limits: SandboxLimits;
  roleEnvironment: InterpreterSessionsDeps['roleEnvironment'];
  networks: NamedNetworks;
  /** Mode of the built-in interpreter. */
  builtInNetwork: 'PUBLIC' | 'SANDBOX';
  /** Packages that were fetched; several data directories may share it. */
  cacheDir: string;
  dataDir: string;
  image: Variant;
  /** Whether images and sessions are made when the service starts. */
  prepare: boolean;
  /** The platform's own account, whose built-in interpreter has sessions standing ready. */
  accountId: string;
  preparations: Preparations;
  warmSessions: number;
  executionSeconds: number;
  log: Logger;
}

export interface CodeInterpreterPort {
  /** How to watch a session that survived a restart; undefined when its interpreter is gone. */
  planOf(row: SessionRow): Promise<SessionPlan | undefined>;
  /** Digests of images that sessions are made from. */
  imagesInUse(): Promise<string[]>;
}

const SOURCE = join(import.meta.dirname, '../../../../../images/code-interpreter');
const GRACE_MS = 20_000;

/** Code interpreters: Python, JavaScript and TypeScript in a sandbox of their own (spec: Code Interpreter operations). */
export function createCodeInterpreterService(
  deps: CodeInterpreterServiceDeps,
): Service<CodeInterpreterOperation, CodeInterpreterPort> {
  const interpreters = new Interpreters(deps);
  const images = new InterpreterImages({
    ...deps,
    cacheDir: join(deps.cacheDir, 'code-interpreter'),
    sourceDir: SOURCE,
    recordDir: join(deps.dataDir, 'images', 'code-interpreter'),
    variant: deps.image,
  });
  const sessions = new InterpreterSessions({
    ...deps,
    records: new SessionRecords(deps.database),
    images,
    warm: deps.warmSessions,
    health: pingHealth,
  });
  const stopping = new AbortController();
  let preparing: Promise<void> | undefined;
  // In the background: sandboxes take their time to end, and the feed waits for nobody.
  deps.changes.subscribe([INTERPRETER_KIND], async (changed) => {
    const own = (arn: string): boolean => arn.includes(':code-interpreter-custom/');
    const live = deps.sessions.all().flatMap(({ row }) => (own(row.resourceArn) ? [row.resourceArn] : []));
    const arns = new Set(changed === 'all' ? live : changed.map(({ key }) => key));
    interpreters
      .endDeleted(arns)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'sessions of deleted code interpreters did not end'));
  });
  return {
    operations: codeInterpreterOperations({
      ...deps,
      interpreters,
      sessions,
      limits: { executionSeconds: deps.executionSeconds, graceMs: GRACE_MS },
    }),
    port: {
      async planOf(row) {
        const interpreter = await interpreters
          .get(interpreterIdOf(row.resourceArn), row.accountId)
          .catch(() => undefined);
        return interpreter && sessions.planOf(interpreter, row.accountId, row.sessionId);
      },
      imagesInUse: () => images.digests(),
    },
    async start() {
      if (deps.prepare) preparing = sessions.prepare(interpreters.builtIn(deps.accountId), stopping.signal);
    },
    async stop() {
      stopping.abort(new Error('the server is stopping'));
      await images.close();
      await preparing;
    },
  };
}
