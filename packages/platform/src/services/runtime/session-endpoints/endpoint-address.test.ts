import { describe, expect, it } from 'vitest';
import { endpointUrl, readEndpointRequest, withoutSignature } from './endpoint-address.ts';

const session = { sandboxId: 's-0123456789abcdef', qualifier: 'DEFAULT' };
const url = endpointUrl('', session);

describe('the address of a session', () => {
  it.each([
    ['/9000', 9000, '/'],
    ['/9000/', 9000, '/'],
    ['/9000?a=1', 9000, '/?a=1'],
    ['/8081/a/b%2Fc?x=/1/&y', 8081, '/a/b%2Fc?x=/1/&y'],
  ])('is followed by port and path: %s', (rest, port, target) => {
    expect(readEndpointRequest(`${url}${rest}`)).toEqual({ ...session, port, target });
  });

  it.each(['', '/', '/x', '/900000/', '/-1/', '/9000x/'])('leads nowhere without a port: %s', (rest) => {
    expect(() => readEndpointRequest(`${url}${rest}`)).toThrow('There is no session at this address.');
  });
});

describe('a presigned URL without its signature', () => {
  it('keeps the rest of the query to the letter', () => {
    const signature = 'X-Amz-Algorithm=A&X-Amz-Credential=B&X-Amz-Date=C&X-Amz-Expires=60&X-Amz-Security-Token=D';
    expect(withoutSignature(`/a?x=%2f&${signature}&y&x%2Damz-signature=E&X-Amz-SignedHeaders=host&X-Amz-Mine=F`)).toBe(
      '/a?x=%2f&y&X-Amz-Mine=F',
    );
    expect(withoutSignature('/a?X-Amz-Signature=E')).toBe('/a');
    expect(withoutSignature('/a')).toBe('/a');
  });
});
