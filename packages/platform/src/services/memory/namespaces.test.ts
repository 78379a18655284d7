import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkTemplate, namespaceKey, namespaceScope, ownVariables, renderNamespace } from './namespaces.ts';

const values = { actorId: 'jane', sessionId: 's1', memoryStrategyId: 'facts-0123456789', variables: { team: 'red' } };

describe('namespace templates', () => {
  it.each([
    ['/strategies/{memoryStrategyId}/actors/{actorId}', '/strategies/facts-0123456789/actors/jane'],
    ['/actors/{actor_id}/sessions/{session_id}', '/actors/jane/sessions/s1'],
    ['/team/{team}/', '/team/red/'],
    ['plain', 'plain'],
    ['/team/{other}', undefined],
  ])('renders %s', (template, expected) => {
    expect(renderNamespace(template, values)).toBe(expected);
  });

  it('puts values in once: a value that looks like a variable stays as it is', () => {
    expect(renderNamespace('/a/{actorId}', { ...values, actorId: '{sessionId}' })).toBe('/a/{sessionId}');
  });

  it('refuses a variable that nobody declared and names the field', () => {
    expect(ownVariables('/t/{team}/{actorId}')).toEqual(['team']);
    expect(() => checkTemplate('/t/{team}', ['team'], 'namespaceTemplates[0]')).not.toThrow();
    expect(() => checkTemplate('/t/{team}', [], 'namespaceTemplates[0]')).toThrow(
      /namespaceTemplates\[0\] uses \{team\}/,
    );
  });
});

describe('namespace scopes', () => {
  it('takes one of namespace and namespacePath', () => {
    expect(namespaceScope({ namespace: '/a/' })).toEqual({ kind: 'exact', key: '/a' });
    expect(namespaceScope({ namespacePath: '/a' })).toEqual({ kind: 'path', key: '/a' });
    expect(namespaceScope({})).toEqual({ kind: 'all' });
    expect(() => namespaceScope({ namespace: '/a', namespacePath: '/b' })).toThrow(/namespacePath cannot be given/);
  });

  it('keys differ only by slashes at the end', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(3), (text, slashes) => {
        expect(namespaceKey(text + '/'.repeat(slashes))).toBe(namespaceKey(text));
      }),
    );
  });
});
