import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IamPrincipal } from '../auth/index.ts';
import { FakeClock } from '../fake-clock.ts';
import { peerAuthenticator } from './peer-authenticator.ts';
import { PEER_HEADER, PeerTokens } from './peer-token.ts';

const principal: IamPrincipal = {
  kind: 'iam',
  accountId: '123456789012',
  arn: 'arn:aws:iam::123456789012:user/ann',
  accessKeyId: 'AKIA',
  tags: {},
};
const request = { method: 'POST', url: '/runtimes/a/invocations?qualifier=b' };

function servers(otherKey = 1) {
  const clock = new FakeClock();
  const a = new PeerTokens({ serverId: 'a', key: new Uint8Array(32).fill(1), clock });
  const b = new PeerTokens({ serverId: 'b', key: new Uint8Array(32).fill(otherKey), clock });
  return { a, b, clock };
}

describe('what one server vouches for to another', () => {
  it('is believed by the server that it is meant for, for that request', () => {
    const { a, b } = servers();
    expect(b.verify(a.sign({ to: 'b', principal, ...request }), request)).toMatchObject({ principal });
  });

  it('is not believed for another request, by another server, later, or under another key', async () => {
    const { a, b, clock } = servers();
    const token = a.sign({ to: 'b', principal, ...request });
    expect(b.verify(token, { ...request, method: 'GET' })).toBeUndefined();
    expect(b.verify(token, { ...request, url: '/runtimes/other/invocations' })).toBeUndefined();
    expect(a.verify(token, request)).toBeUndefined();
    expect(servers(2).b.verify(token, request)).toBeUndefined();
    expect(b.verify(token, request)).toBeDefined();
    await clock.advance(6 * 60_000);
    expect(b.verify(token, request)).toBeUndefined();
  });

  it('is not believed with any character changed, nor is anything that was not signed', () => {
    const { a, b } = servers();
    const token = a.sign({ to: 'b', principal, ...request });
    const characters = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.'];
    fc.assert(
      fc.property(fc.nat(token.length - 2), fc.constantFrom(...characters), (at, character) => {
        // The last character of base64 has bits that say nothing, which is why it is left alone.
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        expect(b.verify(changed, request) === undefined).toBe(changed !== token);
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(b.verify(text, request)).toBeUndefined();
      }),
    );
  });

  it('stands in for a signature at the door, and a wrong one is refused even beside a good signature', async () => {
    const { a, b } = servers();
    const inner = {
      authenticate: () => ({ principal: { ...principal, arn: 'signed' }, body: { kind: 'unsigned' as const } }),
    };
    const door = peerAuthenticator(inner, b);
    const of = (headers: string[]) =>
      door.authenticate({
        method: request.method,
        rawUrl: request.url,
        rawHeaders: headers,
        service: 'bedrock-agentcore',
      });
    const token = a.sign({ to: 'b', principal, ...request });
    expect(await of([PEER_HEADER, token])).toMatchObject({ principal: { arn: principal.arn } });
    expect(await of([])).toMatchObject({ principal: { arn: 'signed' } });
    await expect(of([PEER_HEADER, `${token}x`])).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(of([PEER_HEADER, a.sign({ to: 'b', ...request })])).rejects.toMatchObject({
      code: 'AccessDeniedException',
    });
  });
});
