import { errors } from '@agentplatform/contract';
import type { FastifyPluginAsync } from 'fastify';
import { pino } from 'pino';
import { systemClock } from '../../clock.ts';
import { createMetrics } from '../../telemetry/index.ts';
import type { RouteSet } from '../routes/route.ts';
import { RoutePipeline, type RoutePipelineDeps } from '../routes/route-pipeline.ts';
import { bodies } from './bodies.ts';

/** Nobody can prove who he is, and whoever could may do everything. */
const NOBODY: RoutePipelineDeps = {
  authenticator: {
    authenticate() {
      throw errors.missingAuthentication('The request carries no credentials.');
    },
  },
  keys: { find: () => undefined },
  authorize: () => undefined,
  refuseEarly: () => undefined,
  needRoom: () => undefined,
  bodies,
  rates: { take: () => undefined, refused: () => undefined },
  audit: () => undefined,
  needRecord: () => undefined,
  spool: { take: () => Promise.reject(new Error('this test spools nothing')) },
  metrics: createMetrics({ process: false }),
  newRequestId: () => 'request-1',
  clock: systemClock,
  log: pino({ level: 'silent' }),
};

/** A plugin that serves these sets through the stages, with what of `deps` matters to the test. */
export function served(
  sets: readonly RouteSet[],
  deps: Partial<RoutePipelineDeps> = {},
  admit: Parameters<RoutePipeline['plugin']>[1] = () => undefined,
): FastifyPluginAsync {
  return new RoutePipeline({ ...NOBODY, ...deps }).plugin(sets, admit);
}
