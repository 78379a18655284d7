import fc from 'fast-check';
import { expect, it } from 'vitest';
import { concerns, mayForbid, scopesOf } from './policy-scope.ts';

const ONE = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/one-0123456789';
const OTHER = `${ONE.slice(0, -1)}8`;
const PARTS = [
  'permit',
  'forbid',
  '(',
  ')',
  '[',
  ']',
  ',',
  ';',
  '"',
  '\\',
  '//',
  '\n',
  '@',
  '::',
  '==',
  'in',
  'action',
  'resource',
  ONE,
  OTHER,
  'AgentCore',
];
const gateway = (arn: string) => `AgentCore::Gateway::"${arn}"`;

it('tells the tools and the gateway of a policy', () => {
  const text = `// forbid(principal, action, resource);
    @id("a (b") permit(principal is AgentCore::OAuthUser, action == AgentCore::Action::"shop___buy", resource == ${gateway(ONE)})
    when { principal.getTag("x") == "forbid(principal, action, resource);" };`;
  expect(scopesOf(text)).toEqual([{ effect: 'permit', actions: ['shop___buy'], gateway: ONE }]);
  const list = `forbid(principal, action in [AgentCore::Action::"a___b", AgentCore::Action::"a___c"], resource is AgentCore::Gateway);`;
  expect(scopesOf(list)).toEqual([{ effect: 'forbid', actions: ['a___b', 'a___c'], gateway: undefined }]);
});

it.each([
  'forbid(principal, action, resource);',
  'forbid(principal, action in AgentCore::Action::"Mcp", resource);',
  `forbid(principal, action == AgentCore::Action::"a___\\u{62}", resource == AgentCore::Gateway::"\\u{61}");`,
  `forbid(principal, action, resource) when { resource == ${gateway(OTHER)} };`,
  `forbid(principal, action, resource in ${gateway(OTHER)});`,
  `forbid(principal, action == Other::Action::"a___c", resource == Other::Gateway::"${OTHER}");`,
  `permit(principal, action == AgentCore::Action::"x___y", resource == ${gateway(OTHER)}); forbid(principal, action, resource);`,
  'forbid(principal, action == "',
  'nonsense',
])('what is not plainly about something else counts: %s', (text) => {
  const scopes = scopesOf(text);
  expect(concerns(scopes, ONE)).toBe(true);
  expect(mayForbid(scopes, 'a___b')).toBe(true);
});

it('leaves out only what is plainly about another gateway or another tool', () => {
  const forbid = scopesOf(`forbid(principal, action == AgentCore::Action::"x___y", resource == ${gateway(OTHER)});`);
  expect(concerns(forbid, ONE)).toBe(false);
  expect(concerns(forbid, OTHER)).toBe(true);
  expect(mayForbid(forbid, 'a___b')).toBe(false);
  expect(mayForbid(forbid, 'x___y')).toBe(true);
  expect(mayForbid(scopesOf('permit(principal, action, resource);'), 'a___b')).toBe(false);
});

it('any text has an answer, and a forbid of everything before or behind it is never lost', () => {
  const forbid = 'forbid(principal, action, resource);';
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...PARTS), fc.string({ maxLength: 3 })), { maxLength: 30 }),
      (parts) => {
        const text = parts.join('');
        expect(scopesOf(text)).toBeInstanceOf(Array);
        const scopes = scopesOf(`${forbid}${text}`);
        expect(concerns(scopes, ONE) && mayForbid(scopes, 'a___b')).toBe(true);
      },
    ),
    { seed: 17, numRuns: 500 },
  );
});
