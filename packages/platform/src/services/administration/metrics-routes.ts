import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';
import { type Route, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { Metrics } from '../../kernel/telemetry/index.ts';

export interface MetricsDeps {
  metrics: Metrics;
  /** `loopback`: programs on this machine, and signed callers with the permission. `public`: everybody. `off`: nobody. */
  access: 'loopback' | 'public' | 'off';
}

const READ = { action: 'agentplatform:ReadMetrics', resource: '*' };

/** What proxies add; with one of them the other end of a loopback connection is not who asks. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/** `/metrics` in Prometheus' text format. */
export function metricsRoutes({ metrics, access }: MetricsDeps): RouteSet {
  const route: Route = {
    method: 'GET',
    url: '/metrics',
    ...(access === 'public'
      ? { open: 'everybody', because: 'the configuration says so' }
      : {
          open: isLocal,
          because: 'it is the machine itself that asks',
          others: { credentials: SIGNED, rights: READ },
        }),
    async answer({ reply }) {
      const { contentType, body } = await metrics.render();
      return reply.type(contentType).send(body);
    },
  };
  return { name: 'metrics', routes: access === 'off' ? [] : [route] };
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
