import { objectWriter } from '../../kernel/objects/index.ts';
import { NamedNetworks, subnetMap } from '../../kernel/sandbox/index.ts';
import { platformKey } from '../../kernel/secrets/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { browserMigrations, browserRetention, createBrowserService } from './index.ts';
import { BROWSER_OPERATIONS, type BrowserOperation } from './operations.ts';
import { PROFILE_OPERATIONS, type ProfileOperation } from './profiles/profile-operations.ts';
import { BROWSER_SESSIONS, explainStart } from './session-kind.ts';

const SUBNETS = 'browser.subnets';
/** The wire's: beyond it a message is answered by the close code 1009. */
const MAX_MESSAGE_BYTES = 100 * 2 ** 20;
const PING_INTERVAL_MS = 30_000;
const HANDSHAKE_MS = 20_000;

/** Browsers, in the sandboxes that the configuration describes. */
export const module: ServiceModule<'browser', BrowserOperation | ProfileOperation> = {
  operations: [...BROWSER_OPERATIONS, ...PROFILE_OPERATIONS],
  migrations: browserMigrations,
  retention: (database, { sessionsMs }) => [browserRetention(database, sessionsMs)],
  async create(kernel) {
    const { config, network, identifiers } = kernel;
    const { subnets = '', prepare, warmSessions, embedders = '' } = config.browser;
    const service = createBrowserService({
      ...kernel,
      limits: config.sandbox.limits,
      networks: new NamedNetworks({ setting: SUBNETS, public: network, subnets: subnetMap(subnets, SUBNETS) }),
      dataDir: config.data,
      prepare: prepare === 'on',
      warmSessions,
      streams: {
        maxMessageBytes: MAX_MESSAGE_BYTES,
        pingIntervalMs: PING_INTERVAL_MS,
        handshakeMs: HANDSHAKE_MS,
      },
      viewKey: await platformKey(kernel.secrets, kernel.accountId, 'live-views'),
      objects: objectWriter(kernel.objects),
      keys: kernel.iam.keys,
      embedders: embedders.replaceAll(',', ' '),
      roleEnvironment: (role) => kernel.sandboxCredentials.environment(role),
      newIdSuffix: identifiers.suffix,
      newSessionId: () => identifiers.session().replaceAll('-', ''),
    });
    const { planOf, imagesInUse } = service.port;
    return { ...service, sessionKind: { name: BROWSER_SESSIONS, planOf, explain: explainStart }, imagesInUse };
  },
};
