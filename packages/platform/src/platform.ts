import { announce, type Ready } from './announce.ts';
import { Closing } from './closing.ts';
import type { Config } from './config.ts';
import type { Life } from './life.ts';
import { type Front, openHttp } from './open-http.ts';
import { type Kernel, openKernel } from './open-kernel.ts';
import { reachable } from './open-lease.ts';
import { loadServices, Services } from './open-services.ts';
import { openTls } from './open-tls.ts';
import type { AnyManifest } from './service-module.ts';
import { services } from './services.ts';

export interface Platform {
  /** Takes requests from now on. Rejects with the system's error when the port is taken. */
  listen(): Promise<Ready>;
  /** Orderly end: requests under way finish within the grace, sessions end, what is in the journal reaches the database. */
  close(): Promise<void>;
}

/** Builds the platform: the common parts, the services on them, and what they are reached by. Nothing else constructs parts. */
export async function createPlatform(
  config: Config,
  life: Life,
  manifests: readonly AnyManifest[] = services,
): Promise<Platform> {
  const closing = new Closing();
  try {
    const loaded = await loadServices(manifests);
    const kernel = await openKernel(config, { life, closing, modules: loaded.map(({ module }) => module) });
    const open = await Services.open(kernel, loaded);
    const front = await openHttp(kernel, open);
    const { changes, lease, sessions, forward } = kernel;
    // Whoever keeps anything in memory has subscribed by now.
    await changes.start();
    await lease.open();
    lease.start(
      () => sessions.giveUp(),
      (serverId, epoch) => forward?.abandon(serverId, epoch),
    );
    await open.start(kernel);
    return { listen: () => listen(kernel, open, front), close: () => closing.run() };
  } catch (error) {
    await closing.run();
    throw error;
  }
}

async function listen(kernel: Kernel, services: Services, { server, sockets }: Front): Promise<Ready> {
  const { config, region, clock, log, closing, life, report, iam } = kernel;
  const { host, tls, data } = config;
  // A start that fails says so itself; from here on there are others who would lose the server.
  kernel.unhandled.guard();
  const { origin } = await server.listen(host, config.port);
  const address = config.servers.address ?? reachable(origin);
  kernel.reach.endpoint = `http://${address}`;
  await kernel.lease.announce(address);
  closing.add(() => server.close(config.shutdownGraceSeconds * 1000));
  closing.add(async () => {
    await sockets.close();
    await services.drain();
  });
  const secure = tls.on ? await openTls(server, { data, region, host, port: tls.port, clock, log }) : undefined;
  if (secure) closing.add(secure.close);
  const { isolation } = report;
  const { restarts, lastEnd } = life;
  const ready = await announce(data, iam, { endpoint: origin, region, isolation, tls: secure?.tls, restarts });
  if (restarts > 0) log.warn({ restarts, lastEnd }, 'the server crashed and was restarted');
  log.info({ endpoint: origin, isolation }, 'serving');
  return ready;
}
