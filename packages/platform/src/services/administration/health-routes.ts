import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { PlatformProof } from './platform-proof.ts';

/** One thing that must work before the server takes requests, e.g. the database. */
export interface ReadinessCheck {
  name: string;
  /** It is told, and requests are taken all the same. */
  advisory?: boolean;
  check(): Promise<{ ok: boolean; reason?: string }>;
}

export interface HealthDeps {
  readiness: readonly ReadinessCheck[];
  proof: Pick<PlatformProof, 'of'>;
  clock: Clock;
  log: Logger;
}

/** Anybody may ask, so that asking often must not become work for the database. */
const REMEMBERED_MS = 500;

interface Report {
  ready: boolean;
  checks: Record<string, { ok: boolean }>;
}

/**
 * `/healthz`: the server answers, and with `?nonce=` which platform it belongs to (see {@link PlatformProof}). `/readyz`: so does what it needs. Open to everybody, and therefore silent about everything else:
 * why a check fails stands in the log.
 */
export function healthRoutes({ readiness, proof, clock, log }: HealthDeps): RouteSet {
  let last: { at: number; report: Promise<Report> } | undefined;
  const failing = new Set<string>();

  async function look(): Promise<Report> {
    const results = await Promise.all(
      readiness.map(async ({ name, advisory, check }) => ({ name, advisory, ...(await check()) })),
    );
    for (const { name, ok, reason } of results) {
      if (ok) failing.delete(name);
      else if (!failing.has(name)) log.warn({ check: name, reason }, 'not ready');
      if (!ok) failing.add(name);
    }
    const checks = Object.fromEntries(results.map(({ name, ok }) => [name, { ok }]));
    return { ready: results.every(({ ok, advisory }) => ok || advisory), checks };
  }

  const common = { method: 'GET', open: 'everybody', because: 'it says nothing of anybody', unlimited: true } as const;
  return {
    name: 'health',
    routes: [
      {
        ...common,
        url: '/healthz',
        answer: ({ request }) => ({ status: 'ok', proof: proof.of((request.query as { nonce?: unknown }).nonce) }),
      },
      {
        ...common,
        url: '/readyz',
        async answer({ reply }) {
          const now = clock.monotonic();
          if (!last || now - last.at >= REMEMBERED_MS) last = { at: now, report: look() };
          const { ready, checks } = await last.report;
          return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready', checks });
        },
      },
    ],
  };
}
