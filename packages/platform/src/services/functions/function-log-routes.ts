import { closeSignal, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import { type LogArchive, type Sessions, sessionLogs } from '../../kernel/sessions/index.ts';
import { functionArn, functionName } from './function.ts';
import type { Functions } from './functions.ts';

export interface FunctionLogRoutesDeps {
  functions: Pick<Functions, 'get'>;
  sessions: Pick<Sessions, 'of'>;
  archive: LogArchive;
  region: string;
}

/** The platform's own route about functions: what they print, as runtimes have it. */
export function functionLogRoutes({ functions, region, ...logs }: FunctionLogRoutesDeps): RouteSet {
  return {
    name: 'functions',
    routes: [
      {
        method: 'GET',
        url: '/_platform/functions/:name/logs',
        credentials: SIGNED,
        ask({ params, query, accountId, reply }) {
          const name = functionName(params.name ?? '', { region, accountId });
          const resourceArn = functionArn({ region, accountId }, name);
          return {
            rights: { action: 'agentplatform:ReadFunctionLogs', resource: resourceArn },
            async answer() {
              await functions.get(name, accountId);
              const wanted = { resourceArn, follow: query.get('follow') === '1' };
              return reply.type('application/x-ndjson').send(sessionLogs(wanted, logs, closeSignal(reply.raw)));
            },
          };
        },
      },
    ],
  };
}
