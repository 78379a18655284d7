import { errors, ServiceError } from '@agentplatform/contract';
import { type RouteSet, readMembers } from '../../kernel/http/index.ts';
import { type LookupDeps, lookupEvents, readLookup } from './lookup-events.ts';

/** The version of CloudTrail's API and its one operation that is here. */
const TARGET = 'com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.';

/** CloudTrail's JSON protocol as far as the trail can be read by it: `LookupEvents`. */
export function cloudTrailRoutes(deps: LookupDeps): RouteSet {
  return {
    name: 'cloudtrail',
    routes: [
      {
        method: 'POST',
        url: '/',
        credentials: { kind: 'signature', service: 'cloudtrail' },
        onlySignedFor: 'cloudtrail',
        ask({ request, body, reply }) {
          const target = String(request.headers['x-amz-target'] ?? '');
          if (target !== `${TARGET}LookupEvents`)
            throw errors.invalidInput(
              `The action "${target.slice(TARGET.length).slice(0, 80)}" of CloudTrail is not served; LookupEvents is.`,
            );
          return {
            rights: { action: 'cloudtrail:LookupEvents', resource: '*' },
            async answer() {
              const answer = await lookupEvents(deps, readLookup(readMembers(body, '{"MaxResults": 50}')));
              return reply.type('application/x-amz-json-1.1').send(JSON.stringify(answer));
            },
          };
        },
      },
    ],
    writeError(error, { reply }) {
      if (!(error instanceof ServiceError)) return undefined;
      const body = { __type: error.code, message: error.wireMessage };
      return reply.code(error.status).type('application/x-amz-json-1.1').send(JSON.stringify(body));
    },
  };
}
