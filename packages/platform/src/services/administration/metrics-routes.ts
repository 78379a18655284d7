import type { IncomingMessage } from 'node:http';
import type { FastifyPluginAsync } from 'fastify';
import ipaddr from 'ipaddr.js';
import type { AdminGuard } from '../../kernel/http/admin-guard.ts';
import type { Metrics } from '../../kernel/telemetry/index.ts';

export interface MetricsDeps {
  metrics: Metrics;
  /** `loopback`: the machine itself, and whoever signs and may; `public`: everybody; `off`: nobody. */
  access: 'loopback' | 'public' | 'off';
  guard: AdminGuard;
}

/** What proxies add; with one of them the other end of a loopback connection is not who asks. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/** `/metrics` in Prometheus' text format. */
export function metricsRoutes({ metrics, access, guard }: MetricsDeps): FastifyPluginAsync {
  return async (app) => {
    if (access === 'off') return;
    app.get('/metrics', async (request, reply) => {
      if (access !== 'public' && !isLocal(request.raw)) await guard(request, 'agentplatform:ReadMetrics', () => '*');
      const { contentType, body } = await metrics.render();
      return reply.type(contentType).send(body);
    });
  };
}

/**
 * Whether a program on this machine asks, by the machine's own name: not a proxy for somebody else, nor a web page whose name was made
 * to point here.
 */
export function isLocal({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
  if (FORWARDED.some((name) => headers[name] !== undefined)) return false;
  const host = headers.host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
  return isLoopback(socket.remoteAddress) && (host === 'localhost' || isLoopback(host));
}

function isLoopback(address: string | undefined): boolean {
  if (address === undefined || !ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === 'loopback';
}
