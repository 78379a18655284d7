import { errors } from '@agentplatform/contract';
import { type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { MasterKeys, Secrets } from '../../kernel/secrets/index.ts';

export interface MasterKeyDeps {
  masterKeys: Pick<MasterKeys, 'fixed' | 'count' | 'current'>;
  secrets: Pick<Secrets, 'rotate'>;
  /** Seals anew what lies under the master key itself; how much it was. */
  reseal(): Promise<number>;
  /** Whether no other server works on the same database. */
  alone(): boolean;
}

/** `POST /_platform/master-key/rotate`: what everything secret is sealed with becomes another, while the server works. */
export function masterKeyRoutes(deps: MasterKeyDeps): RouteSet {
  let rotating = false;
  const rotate = async () => {
    const { masterKeys, secrets, reseal, alone } = deps;
    const keepKeys = masterKeys.fixed || !alone();
    if (keepKeys && masterKeys.count === 1)
      throw errors.conflict(
        'A master key that this server makes would be known to no other server, or not to its configuration.',
        {
          remedy:
            'Put a new key in front of the old one, for all servers, and call again: docs/guides/several-servers.md.',
        },
      );
    if (rotating) throw errors.conflict('The master key is being rotated already.');
    rotating = true;
    try {
      const resealed = await secrets.rotate(reseal, { keepKeys });
      return { keyId: masterKeys.current().id, resealed, keysKept: keepKeys };
    } finally {
      rotating = false;
    }
  };
  return {
    name: 'master-key',
    routes: [
      {
        method: 'POST',
        url: '/_platform/master-key/rotate',
        credentials: SIGNED,
        ask: ({ accountId }) => ({
          rights: {
            action: 'agentplatform:RotateMasterKey',
            resource: `arn:aws:agentplatform::${accountId}:master-key`,
          },
          answer: rotate,
        }),
      },
    ],
  };
}
