import { describe, expect, it } from 'vitest';
import { createAuthorizer, type IamDirectory, type IamPrincipal } from './kernel/auth/index.ts';
import { FakeClock } from './kernel/fake-clock.ts';
import { createRefuseEarly } from './refuse-early.ts';

const ACCOUNT = '123456789012';
const policy = (...Statement: object[]) => JSON.stringify({ Version: '2012-10-17', Statement });
const ACTION = 'bedrock-agentcore:CreateEvent';

/** Whether Ada, with these policies of her own and these of resources, is refused at once. */
function refused(own: string[], resources: string[] = [], arn = `arn:aws:iam::${ACCOUNT}:user/ada`): boolean {
  const policies = Object.fromEntries(own.map((text, index) => [`p${index}`, text]));
  const users = new Map([['ada', { policies }]]);
  const directory = { state: { users, roles: new Map(), revision: 1 } } as unknown as IamDirectory;
  const authorizer = createAuthorizer({ directory, clock: new FakeClock(), region: 'us-east-1' });
  const principal = { kind: 'iam', accountId: ACCOUNT, arn, accessKeyId: 'A', tags: {} } as unknown as IamPrincipal;
  const refuseEarly = createRefuseEarly({ authorizer }, { all: () => resources, revision: {} });
  try {
    refuseEarly(principal, ACTION);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'AccessDeniedException' });
    return true;
  }
}

const allow = (Action: string | string[], Resource = '*') => ({ Effect: 'Allow', Action, Resource });
const MEMORY = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:memory/m-0123456789`;

describe('who is refused before his request is read', () => {
  it('is who has no policy that allows the action on anything', () => {
    expect(refused([])).toBe(true);
    expect(refused([policy(allow('bedrock-agentcore:GetEvent')), policy(allow('s3:*'))])).toBe(true);
    expect(refused([policy({ Effect: 'Deny', Action: '*', Resource: '*' })])).toBe(true);
  });

  it('is nobody who may do it on something, on some condition, or by a resource’s own policy', () => {
    expect(refused([policy(allow(ACTION, MEMORY))])).toBe(false);
    expect(refused([policy(allow('bedrock-agentcore:Create*'))])).toBe(false);
    const when = { StringEquals: { 'bedrock-agentcore:actorId': 'bob' } };
    expect(refused([policy({ ...allow(ACTION), Condition: when })])).toBe(false);
    const lent = policy({ ...allow(ACTION, MEMORY), Principal: { AWS: `arn:aws:iam::${ACCOUNT}:user/ada` } });
    expect(refused([], [lent])).toBe(false);
    const other = policy({ ...allow(ACTION, MEMORY), Principal: { AWS: `arn:aws:iam::${ACCOUNT}:user/bob` } });
    // Whom it allows is told when the resource is known.
    expect(refused([], [other])).toBe(false);
    expect(refused([], [], `arn:aws:iam::${ACCOUNT}:root`)).toBe(false);
  });

  it('is told without a look at every resource’s policy again, until one changes', () => {
    let looks = 0;
    const bob = (n: number) => ({ AWS: `arn:aws:iam::${ACCOUNT}:user/bob${n}` });
    const get = allow('bedrock-agentcore:GetEvent', MEMORY);
    let resources = Array.from({ length: 3_000 }, (_, n) => policy({ ...get, Principal: bob(n) }));
    let revision = {};
    const policies = {
      all: () => {
        looks += 1;
        return resources;
      },
      get revision() {
        return revision;
      },
    };
    const directory = { state: { users: new Map(), roles: new Map(), revision: 1 } } as unknown as IamDirectory;
    const authorizer = createAuthorizer({ directory, clock: new FakeClock(), region: 'us-east-1' });
    const arn = `arn:aws:iam::${ACCOUNT}:user/ada`;
    const principal = { kind: 'iam', accountId: ACCOUNT, arn, accessKeyId: 'A', tags: {} } as unknown as IamPrincipal;
    const refuseEarly = createRefuseEarly({ authorizer }, policies);
    for (let call = 0; call < 10; call += 1)
      expect(() => refuseEarly(principal, ACTION)).toThrow('no policy allows it');
    expect(looks).toBe(1);
    resources = [...resources, policy({ ...allow(ACTION, MEMORY), Principal: bob(0) })];
    revision = {};
    expect(() => refuseEarly(principal, ACTION)).not.toThrow();
    expect(looks).toBe(2);
  });

  it('is nobody of whom a policy cannot be read: that is told when the resource is known', () => {
    expect(refused(['{'])).toBe(false);
  });
});
