import { join } from 'node:path';
import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet, SocketService } from '../../kernel/http/index.ts';
import type { ImagesRoom } from '../../kernel/images/index.ts';
import type { Preparations } from '../../kernel/preparations.ts';
import type { NamedNetworks, SandboxLimits, SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { Service } from '../../kernel/service.ts';
import { pingHealth, type SessionPlan, type SessionRow, type Sessions } from '../../kernel/sessions/index.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import { AutomationSockets, type AutomationSocketsDeps } from './automation-sockets.ts';
import { BROWSER_KIND, type Browser, browserIdOf } from './browser.ts';
import { BrowserImage } from './browser-image.ts';
import { BrowserSessions, type BrowserSessionsDeps } from './browser-sessions.ts';
import { Browsers } from './browsers.ts';
import { ViewTickets, type ViewTicketsDeps } from './live-view/tickets.ts';
import { viewRoutes } from './live-view/view-routes.ts';
import { ViewSockets } from './live-view/view-sockets.ts';
import { type BrowserOperation, type BrowserOperationsDeps, browserOperations } from './operations.ts';
import { type ProfileOperation, profileOperations } from './profiles/profile-operations.ts';
import { Profiles, type ProfilesDeps } from './profiles/profiles.ts';
import { Recordings, type RecordingsDeps } from './recording/recordings.ts';
import { SessionRecords } from './session-records.ts';

export { browserRetention } from './retention.ts';
export { browserMigrations } from './tables.ts';

export interface BrowserServiceDeps {
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
  roleEnvironment: BrowserSessionsDeps['roleEnvironment'];
  networks: NamedNetworks;
  dataDir: string;
  /** Whether the image and a session are made when the service starts. */
  prepare: boolean;
  /** The platform's own account, whose built-in browser has sessions standing ready. */
  accountId: string;
  preparations: Preparations;
  warmSessions: number;
  streams: AutomationSocketsDeps['streams'];
  secrets: ProfilesDeps['secrets'];
  objects: RecordingsDeps['objects'];
  /** What tickets of the live view are sealed with, 32 bytes. */
  viewKey: Uint8Array;
  /** Access keys, by which a ticket's holder is known. */
  keys: ViewTicketsDeps['keys'];
  /** Origins that may show the live view in a frame, separated by spaces. */
  embedders: string;
  log: Logger;
}

export interface BrowserPort {
  /** How to watch a session that survived a restart; undefined when its browser is gone. */
  planOf(row: SessionRow): Promise<SessionPlan | undefined>;
  /** Digests of images that sessions are made from. */
  imagesInUse(): Promise<string[]>;
}

const SOURCE = join(import.meta.dirname, '../../../../../images/browser/host');

/** Browsers: a Chromium in a sandbox of its own, driven by CDP (spec: Browser operation). */
export function createBrowserService(
  deps: BrowserServiceDeps,
): Service<BrowserOperation | ProfileOperation, BrowserPort> & { sockets: SocketService; routes: RouteSet[] } {
  const browsers = new Browsers(deps);
  const image = new BrowserImage({ ...deps, sourceDir: SOURCE, recordDir: join(deps.dataDir, 'images', 'browser') });
  const profiles = new Profiles(deps);
  const recordings = new Recordings(deps);
  const sessions = new BrowserSessions({
    recordings,
    ...deps,
    loadProfile: async (id, accountId) => profiles.load(await profiles.get(id, accountId)),
    records: new SessionRecords(deps.database),
    image,
    warm: deps.warmSessions,
    health: pingHealth,
  });
  const automation = new AutomationSockets({
    ...deps,
    ...{ browsers, sessions },
    listener: (sessionId) => recordings.listener(sessionId),
  });
  const tickets = new ViewTickets({ ...deps, key: deps.viewKey });
  const automationChanged: BrowserOperationsDeps['automationChanged'] = (sessionId, status) => {
    if (status === 'DISABLED') automation.cut(sessionId);
    views.automationChanged(sessionId, status);
  };
  const views = new ViewSockets({ ...deps, browsers, sessions, tickets, automationChanged });
  const sockets: SocketService = { read: (req) => automation.read(req) ?? views.read(req) };
  const stopping = new AbortController();
  let preparing: Promise<void> | undefined;
  // In the background: sandboxes take their time to end, and the feed waits for nobody.
  deps.changes.subscribe([BROWSER_KIND], async (changed) => {
    const own = (arn: string): boolean => arn.includes(':browser-custom/');
    const live = deps.sessions.all().flatMap(({ row }) => (own(row.resourceArn) ? [row.resourceArn] : []));
    const arns = new Set(changed === 'all' ? live : changed.map(({ key }) => key));
    browsers
      .endDeleted(arns)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'sessions of deleted browsers did not end'));
  });
  const browserOf = (row: SessionRow): Promise<Browser | undefined> =>
    browsers.get(browserIdOf(row.resourceArn), row.accountId).catch(() => undefined);
  return {
    operations: {
      ...browserOperations({ ...deps, browsers, sessions, automationChanged }),
      ...profileOperations({ ...deps, profiles, browsers, sessions }),
    },
    sockets,
    routes: [viewRoutes({ ...deps, browsers, sessions, tickets })],
    port: {
      async planOf(row) {
        const browser = await browserOf(row);
        return browser && sessions.planOf(browser, row.accountId, row.sessionId);
      },
      imagesInUse: () => image.digests(),
    },
    async start() {
      await sessions.recordAgain(browserOf);
      if (deps.prepare) preparing = sessions.prepare(browsers.builtIn(deps.accountId), stopping.signal);
    },
    async stop() {
      stopping.abort(new Error('the server is stopping'));
      await recordings.close();
      await image.close();
      await preparing;
    },
  };
}
