import { errors } from '@agentplatform/contract';
import { type KnownCall, type KnownRoute, type RouteSet, readMembers, SIGNED } from '../../kernel/http/index.ts';
import { ALGORITHMS, KEY_SPECS, type KeySpec, type StoredKey } from './key.ts';
import { publicJwk } from './key-material.ts';
import type { Keys } from './keys.ts';

type Answer = (arn: string, call: KnownCall) => Promise<unknown>;

const MOST_DESCRIPTION = 256;
const MOST_DAYS = 30;
/** More than an account may have. */
const ALL = 1000;

/** `/_platform/keys…`: keys of the account, which never leave the platform. What policies name is `kms:` on the key's ARN. */
export function keyRoutes(keys: Keys): RouteSet {
  const route = (method: 'GET' | 'POST', path: string, action: string, answer: Answer): KnownRoute => ({
    method,
    url: `/_platform/keys${path}`,
    credentials: SIGNED,
    ask(call) {
      const { accountId, params } = call;
      const arn = keys.arnOf(accountId, params.id ?? '*');
      return { rights: { action: `kms:${action}`, resource: arn }, answer: () => answer(arn, call) };
    },
  });
  return {
    name: 'keys',
    routes: [
      route('GET', '', 'ListKeys', async (_, { accountId }) => ({
        keys: (await keys.list(accountId, { limit: ALL })).items.map(view),
      })),
      route('POST', '', 'CreateKey', async (_, { accountId, body, principal }) =>
        view(await keys.create(accountId, { ...readNewKey(body), createdBy: principal.arn })),
      ),
      route('GET', '/:id', 'DescribeKey', async (arn, { accountId }) => view(await keys.get(accountId, arn))),
      route('GET', '/:id/public-key', 'GetPublicKey', async (arn, { accountId }) =>
        publicView(await keys.get(accountId, arn)),
      ),
      route('POST', '/:id/enable', 'EnableKey', async (arn, { accountId }) => view(await keys.enable(accountId, arn))),
      route('POST', '/:id/disable', 'DisableKey', async (arn, { accountId }) =>
        view(await keys.disable(accountId, arn)),
      ),
      route('POST', '/:id/schedule-deletion', 'ScheduleKeyDeletion', async (arn, { accountId, body }) => {
        const key = await keys.scheduleDeletion(accountId, arn, readDays(body));
        return key ? view(key) : { arn, state: 'Deleted' };
      }),
      route('POST', '/:id/cancel-deletion', 'CancelKeyDeletion', async (arn, { accountId }) =>
        view(await keys.cancelDeletion(accountId, arn)),
      ),
    ],
  };
}

function readNewKey(body: Buffer): { spec: KeySpec; description: string } {
  const { spec: wanted = 'SYMMETRIC_DEFAULT', description = '' } = readMembers(body, '{"spec": "RSA_2048"}');
  const spec = KEY_SPECS.find((one) => one === wanted);
  if (!spec) throw errors.invalidField('spec', `must be one of ${KEY_SPECS.join(', ')}`);
  if (typeof description !== 'string' || description.length > MOST_DESCRIPTION)
    throw errors.invalidField('description', `must be a text of at most ${MOST_DESCRIPTION} characters`);
  return { spec, description };
}

function readDays(body: Buffer): number {
  const { days } = readMembers(body, '{"days": 30}');
  if (typeof days === 'number' && Number.isInteger(days) && days >= 0 && days <= MOST_DAYS) return days;
  throw errors.invalidField('days', `must be a whole number from 0 to ${MOST_DAYS}`);
}

function view({ publicKey: _, accountId: _account, createdAt, deletionAt, ...key }: StoredKey) {
  return {
    ...key,
    algorithms: ALGORITHMS[key.spec],
    createdAt: new Date(createdAt).toISOString(),
    ...(deletionAt === undefined ? {} : { deletionAt: new Date(deletionAt).toISOString() }),
  };
}

function publicView({ arn, spec, publicKey }: StoredKey) {
  if (publicKey === undefined)
    throw errors.validation(`The key ${arn} (${spec}) has no public key: it never leaves the platform.`);
  return { arn, spec, algorithms: ALGORITHMS[spec], pem: publicKey, jwk: publicJwk(publicKey) };
}
