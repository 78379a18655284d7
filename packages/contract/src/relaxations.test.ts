import { describe, expect, it } from 'vitest';
import { contractModel } from './model.ts';
import { textRule, wholeMatch } from './patterns.ts';
import { relaxations } from './relaxations.ts';

function accepts(shape: string, text: string): boolean | undefined {
  const plane = contractModel().planes.control;
  const definition = plane.shapes[shape];
  return definition && textRule('control', shape, definition)?.test(text);
}

describe('relaxations', () => {
  it('each name shapes of the model that have a pattern, and a reason', () => {
    for (const { plane, shapes, reason } of relaxations) {
      for (const shape of shapes) expect(contractModel().planes[plane].shapes[shape]?.pattern, shape).toBeDefined();
      expect(reason).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('each relax a shape once, and say what is wanted instead of one pattern of two', () => {
    const named = relaxations.flatMap(({ plane, shapes }) => shapes.map((shape) => `${plane} ${shape}`));
    expect(new Set(named).size).toBe(named.length);
    const shape = contractModel().planes.control.shapes.RuntimeContainerUri ?? { type: 'string' };
    const rule = textRule('control', 'RuntimeContainerUri', shape)?.rule;
    expect(rule).toContain('must be the name of an image');
    expect(rule).not.toContain('dkr');
  });

  it.each([
    '123456789012.dkr.ecr.us-east-1.amazonaws.com/agent:1',
    'public.ecr.aws/x/agent@sha256:abc',
    'ghcr.io/acme/agent:latest',
    'localhost:5000/agent',
    `registry.example.com:8443/a/b_c@sha256:${'a'.repeat(64)}`,
    'python:3.12-slim',
    'platform/hello-agent',
    `platform/hello-agent:v1@sha256:${'0'.repeat(64)}`,
    'oci:/srv/images/agent:v1',
    'oci-archive:/srv/agent.tar',
  ])('take the image %s', (uri) => expect(accepts('RuntimeContainerUri', uri)).toBe(true));

  it.each([
    '',
    'UPPER/case',
    'agent:',
    'a b',
    'oci-archive:relative/x.tar',
    'host..name/x',
    'http://host/x',
    'agent@sha256:short',
    '../agent',
    'a//b',
    '-agent',
    'agent\n',
  ])('refuse the image %j', (uri) => expect(accepts('RuntimeContainerUri', uri)).toBe(false));

  it('take plain http to the loopback interface only', () => {
    const shape = 'McpServerTargetConfigurationEndpointString';
    for (const url of [
      'http://localhost:8000/mcp',
      'http://127.0.0.1/',
      'http://[::1]:9000/mcp',
      'https://example.com/mcp',
    ]) {
      expect(accepts(shape, url), url).toBe(true);
    }
    for (const url of [
      'http://example.com/',
      'http://localhost.example.com/',
      'http://127.0.0.1.example.com/',
      'http://localhost@example.com/',
      'http://10.0.0.1/',
    ]) {
      expect(accepts(shape, url), url).toBe(false);
    }
  });

  it('take {actor_id} in namespace templates', () => {
    expect(accepts('Namespace', '/users/{actor_id}/facts')).toBe(true);
    expect(accepts('Namespace', '/users/{actorId}')).toBe(true);
    expect(accepts('Namespace', '/users/{actor-id}')).toBe(false);
    const original = contractModel().planes.control.shapes.Namespace?.pattern ?? '';
    expect(wholeMatch(original).test('/users/{actor_id}/facts')).toBe(false);
  });
});
