import Fastify from 'fastify';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { served } from '../../kernel/http/testing/serve-routes.ts';
import { healthRoutes } from './health-routes.ts';

it('says whether it is ready, and why not only to the log', async () => {
  const clock = new FakeClock();
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const reason = 'password authentication failed for user "root" at 10.0.0.5:5432';
  const database = { up: true, asked: 0 };
  const check = async () => {
    database.asked += 1;
    return database.up ? { ok: true, latencyMs: 3 } : { ok: false, reason };
  };
  const app = Fastify();
  await app.register(
    served([healthRoutes({ readiness: [{ name: 'database', check }], proof: { of: () => undefined }, clock, log })]),
  );
  const ask = async (url: string) => {
    const answer = await app.inject({ url });
    return { status: answer.statusCode, body: answer.json() };
  };

  expect(await ask('/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
  expect(await ask('/readyz')).toEqual({ status: 200, body: { status: 'ready', checks: { database: { ok: true } } } });

  database.up = false;
  await clock.advance(1000);
  const asked = database.asked;
  // Many who ask at once cost the database one question.
  const [answer] = await Promise.all(Array.from({ length: 50 }, () => ask('/readyz')));
  expect(answer).toEqual({ status: 503, body: { status: 'not ready', checks: { database: { ok: false } } } });
  expect(database.asked).toBe(asked + 1);
  expect(await ask('/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
  // Once, not at every question.
  await clock.advance(1000);
  await ask('/readyz');
  expect(lines.filter((line) => line.includes('password authentication failed'))).toHaveLength(1);

  database.up = true;
  await clock.advance(1000);
  expect((await ask('/readyz')).status).toBe(200);
  await app.close();
});
