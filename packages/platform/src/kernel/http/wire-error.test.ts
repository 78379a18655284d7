import { errors } from '@agentplatform/contract';
import type { FastifyReply } from 'fastify';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { logDefect } from './wire-error.ts';

/** The levels and messages that are logged of an error, of a request to a page whose address is a secret. */
function logged(error: unknown, destroyed: boolean): string[] {
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(line) });
  const request = { url: '/page?request_uri=secret', routeOptions: { url: '/page' } };
  logDefect(error, { raw: { destroyed }, request } as unknown as FastifyReply, log);
  expect(lines.join()).not.toContain('secret');
  return lines.map((line) => `${JSON.parse(line).level} ${JSON.parse(line).msg}`);
}

it('a client who leaves is no defect of the platform', () => {
  expect(logged(new Error('the client closed the connection'), true)).toEqual([
    '30 a request failed after its client had left',
  ]);
});

it('what nobody expected is one, and so is what the platform says of itself', () => {
  const line = '50 a request failed for a reason inside the platform';
  expect(logged(new TypeError('x'), false)).toEqual([line]);
  expect(logged(errors.internal('x answered before anybody had decided that it may.'), false)).toEqual([line]);
});

it('what a client is told is none', () => {
  expect(logged(errors.unavailable('The disk is full.'), false)).toEqual([]);
  expect(logged(errors.validation('No.'), false)).toEqual([]);
});
