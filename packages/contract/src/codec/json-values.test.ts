import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { wireRequest } from '../../test/wire.ts';
import { ServiceError } from '../errors.ts';
import { decodeRequest } from './codec.ts';
import { holdsTooMuch, maxJsonValues } from './json-values.ts';

const bytes = (text: string) => Buffer.from(text);

describe('how much a body holds', () => {
  it('is told for lists, objects and members, however they are written', () => {
    for (const one of ['[]', '{}', '0', '"a"', ' [ ] ', '{"a":0}']) {
      const list = (count: number) => bytes(`[${Array.from({ length: count }, () => one).join(',')}]`);
      expect(holdsTooMuch(list(maxJsonValues + 1)), one).toBe(true);
      expect(holdsTooMuch(list(60_000)), one).toBe(false);
    }
    expect(holdsTooMuch(bytes('['.repeat(maxJsonValues + 1)))).toBe(true);
  });

  it('counts nothing that stands in a text', () => {
    const texts = ['a,b,[{:', '\\', '"', '\\"', '\\\\"', '\n', 'é', '\u2028', '"],["'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...texts), { minLength: 1, maxLength: 5 }), (parts) => {
        const text = parts.join('').repeat(100_000);
        expect(holdsTooMuch(bytes(JSON.stringify({ a: text, b: [text] })))).toBe(false);
        const many = JSON.stringify([text.slice(0, 1000), ...Array.from({ length: maxJsonValues }, () => 0)]);
        expect(holdsTooMuch(bytes(many))).toBe(true);
      }),
      { numRuns: 10, seed: 3 },
    );
    expect(holdsTooMuch(bytes(`"${'x,'.repeat(maxJsonValues)}`))).toBe(false);
  });

  it('is the caller’s error, at the body', () => {
    const request = wireRequest('CreateMemory', { name: 'm', eventExpiryDuration: 7, clientToken: 'a'.repeat(40) });
    const refused = (body: Uint8Array): ServiceError | undefined => {
      try {
        decodeRequest('CreateMemory', { ...request, body });
        return undefined;
      } catch (error) {
        if (error instanceof ServiceError) return error;
        throw error;
      }
    };
    const error = refused(bytes(`{"memoryStrategies":[${'{},'.repeat(maxJsonValues)}{}]}`));
    expect(error?.wireMessage).toContain('body must hold at most 250000 values');
    // A key is given back cut short.
    const long = refused(bytes(`{"name":"m","tags":{"${'k'.repeat(100_000)}":5}}`));
    expect(long?.code).toBe('ValidationException');
    expect(JSON.stringify(long?.members).length).toBeLessThan(5_000);
  });
});
