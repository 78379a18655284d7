import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ImageError } from '../images.ts';
import { parseImageUri } from './image-uri.ts';
import { formatReference, parseReference } from './reference.ts';

const D = `sha256:${'a'.repeat(64)}`;

describe('parseReference', () => {
  it.each([
    ['node', { registry: 'docker.io', repository: 'library/node', tag: 'latest' }],
    ['node:24-slim', { registry: 'docker.io', repository: 'library/node', tag: '24-slim' }],
    ['docker.io/node', { registry: 'docker.io', repository: 'library/node', tag: 'latest' }],
    ['index.docker.io/a/b', { registry: 'docker.io', repository: 'a/b', tag: 'latest' }],
    ['me/app:1', { registry: 'docker.io', repository: 'me/app', tag: '1' }],
    ['ghcr.io/me/app', { registry: 'ghcr.io', repository: 'me/app', tag: 'latest' }],
    ['localhost/app', { registry: 'localhost', repository: 'app', tag: 'latest' }],
    ['localhost:5000/a/b:x', { registry: 'localhost:5000', repository: 'a/b', tag: 'x' }],
    ['127.0.0.1:5000/app', { registry: '127.0.0.1:5000', repository: 'app', tag: 'latest' }],
    ['[::1]:5000/app', { registry: '[::1]:5000', repository: 'app', tag: 'latest' }],
    [
      '123456789012.dkr.ecr.us-west-2.amazonaws.com/my-agent:v1',
      { registry: '123456789012.dkr.ecr.us-west-2.amazonaws.com', repository: 'my-agent', tag: 'v1' },
    ],
    [`node@${D}`, { registry: 'docker.io', repository: 'library/node', digest: D }],
    [`r.io/app:1@${D}`, { registry: 'r.io', repository: 'app', tag: '1', digest: D }],
  ])('%s', (text, expected) => {
    expect(parseReference(text)).toEqual(expected);
  });

  it.each([
    '',
    ':',
    '/',
    'a/',
    '/a',
    'a//b',
    'Node',
    'a:',
    'a:b:c',
    `a@${D}@${D}`,
    'a@sha256:12',
    'a@md5:aa',
    'a b',
    'a:-x',
    `a:${'x'.repeat(129)}`,
    'host:0/a',
    'host:99999/a',
    'host:x/a',
    '-host.io/a',
    '../a',
    'r.io/../a',
    'r.io/a/..',
    'r.io/a?x',
    'r.io/a#x',
    'user:pw@r.io/a',
    'r.io/A',
    'x'.repeat(2000),
    'a\0b',
    'ä',
    '[::1/a',
    '[zz]:1/a',
  ])('refuses %j', (text) => {
    expect(() => parseReference(text)).toThrow(ImageError);
  });

  it('parses or refuses anything, and what it parses survives a round trip', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc
        .array(
          fc.constantFrom(
            'a',
            'B',
            '.',
            ':',
            '/',
            '@',
            '-',
            '_',
            '5000',
            'localhost',
            'sha256:',
            'f'.repeat(64),
            '..',
            '[::1]',
          ),
          { maxLength: 10 },
        )
        .map((p) => p.join('')),
    );
    let parsed = 0;
    fc.assert(
      fc.property(text, (input) => {
        try {
          const reference = parseReference(input);
          parsed += 1;
          expect(parseReference(formatReference(reference))).toEqual(reference);
          // Nothing of it may change which URL is called.
          const url = new URL(`https://${reference.registry}/v2/${reference.repository}/manifests/x`);
          expect(url.pathname).toBe(`/v2/${reference.repository}/manifests/x`);
          expect(url.username + url.search + url.hash).toBe('');
        } catch (error) {
          if (!(error instanceof ImageError)) throw error;
          expect(error.reason).toBe('invalid');
        }
      }),
      { numRuns: 3000 },
    );
    expect(parsed).toBeGreaterThan(50);
  });
});

describe('parseImageUri', () => {
  it.each([
    ['platform/my/app:1', { kind: 'platform', name: 'my/app', tag: '1' }],
    ['platform/app', { kind: 'platform', name: 'app', tag: 'latest' }],
    [`platform/app@${D}`, { kind: 'platform', name: 'app', digest: D }],
    ['oci:/srv/layout', { kind: 'oci', path: '/srv/layout' }],
    ['oci:/srv/layout:v1', { kind: 'oci', path: '/srv/layout', tag: 'v1' }],
    ['oci:/srv/a:b/layout', { kind: 'oci', path: '/srv/a:b/layout' }],
    ['oci-archive:/srv/x.tar', { kind: 'oci-archive', path: '/srv/x.tar' }],
    ['docker-archive:/srv/x.tar:v1', { kind: 'docker-archive', path: '/srv/x.tar', tag: 'v1' }],
    ['me/app', { kind: 'registry', reference: { registry: 'docker.io', repository: 'me/app', tag: 'latest' } }],
  ])('%s', (uri, expected) => {
    expect(parseImageUri(uri)).toEqual(expected);
  });

  it.each([
    '',
    'oci:relative',
    'oci:',
    'oci-archive:x.tar',
    'platform/',
    'platform/A',
    'platform/a:',
    'platform/../x',
    `platform/a@${D}@`,
    'oci:/a\0b',
  ])('refuses %j', (uri) => {
    expect(() => parseImageUri(uri)).toThrow(ImageError);
  });
});
