import { errors } from '@agentplatform/contract';
import { type RouteSet, SIGNED } from '../../kernel/http/routes/route.ts';
import type { MasterKeys, Secrets } from '../../kernel/secrets/index.ts';

export interface MasterKeyDeps {
  masterKeys: Pick<MasterKeys, 'fixed' | 'current'>;
  secrets: Pick<Secrets, 'rotate'>;
  /** Seals anew what lies under the master key itself; how much it was. */
  reseal(): Promise<number>;
  /** How many other servers work on the same database. */
  others(): number;
}

/** `POST /_platform/master-key/rotate`: what everything secret is sealed with becomes another, while the server works. */
export function masterKeyRoutes(deps: MasterKeyDeps): RouteSet {
  let rotating = false;
  const rotate = async () => {
    const { masterKeys, secrets, reseal, others } = deps;
    if (others() > 0 && !masterKeys.fixed)
      throw errors.conflict(
        'Other servers use this database, and none of them would know a master key that this one makes.',
        {
          remedy:
            'Give all of them the new key by the configuration, in front of the old one; see docs/guides/several-servers.md.',
        },
      );
    if (rotating) throw errors.conflict('The master key is being rotated already.');
    rotating = true;
    try {
      const resealed = await secrets.rotate(reseal);
      return { keyId: masterKeys.current().id, resealed, fromConfiguration: masterKeys.fixed };
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
