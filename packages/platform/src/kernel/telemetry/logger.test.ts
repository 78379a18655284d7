import fc from 'fast-check';
import { type Logger, pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { createLogger, logFormat } from './logger.ts';

const secret = 'hunter2-Wp9xQ7Lr3Tz';

/** Every way in which a secret has been seen to get into a log line. */
const leaks: Record<string, (log: Logger) => void> = {
  'a field': (log) => log.info({ apiKey: secret }, 'made'),
  'a header': (log) => log.info({ req: { headers: { authorization: `Bearer ${secret}`, host: 'h' } } }),
  'a header of any case': (log) => log.info({ headers: { 'X-Amz-Security-Token': secret } }),
  'a cookie list': (log) => log.info({ headers: { 'set-cookie': [`sid=${secret}; Path=/`] } }),
  'raw headers': (log) => log.info({ rawHeaders: ['Host', 'h', 'Authorization', secret] }),
  'a Headers object': (log) => log.info({ headers: new Headers({ cookie: `a=${secret}` }) }),
  'a Map': (log) => log.info({ env: new Map([['CLIENT_SECRET', secret]]) }),
  'a deep field': (log) => log.info({ a: { b: [{ c: { d: { clientSecret: secret } } }] } }),
  'an object of credentials': (log) => log.info({ credentials: { accessKeyId: 'AKIA', value: secret } }),
  'a field named in snake case': (log) => log.warn({ oauth: { refresh_token: secret } }),
  'a child': (log) => log.child({ token: secret }).info('x'),
  "a child's child": (log) =>
    log
      .child({ a: 1 })
      .child({ session: { password: secret } })
      .info('x'),
  'the message': (log) => log.info(`got Authorization: Bearer ${secret}`),
  'the message of a template': (log) => log.info('signed with %s', `Bearer ${secret}`),
  'an object in a template': (log) => log.info('answer %o', { access_token: secret }),
  'JSON in a template': (log) => log.info('answer %j', { access_token: secret }),
  'a presigned URL': (log) => log.info({ url: `http://h/p?X-Amz-Credential=k&X-Amz-Signature=${secret}&a=1` }),
  'a URL object': (log) => log.info({ url: new URL(`http://h/p?access_token=${secret}`) }),
  'a database URL': (log) => log.info({ at: `postgres://me:${secret}@db:5432/x` }),
  'an OAuth callback': (log) => log.info({ path: `/callback?state=1&code=${secret}` }),
  'a form body': (log) => log.debug({ body: `grant_type=client_credentials&client_secret=${secret}` }),
  'a JSON body as text': (log) => log.debug({ body: JSON.stringify({ name: 'n', apiKey: secret }) }),
  'a JSON body in a JSON body': (log) =>
    log.debug({ body: JSON.stringify({ inner: JSON.stringify({ password: secret }) }) }),
  'an error': (log) => log.error(new Error(`refused: Bearer ${secret}`)),
  'an error as a field': (log) => log.error({ err: new Error(`401 for https://h/?token=${secret}`) }, 'failed'),
  'the properties of an error': (log) =>
    log.error({ err: Object.assign(new Error('x'), { config: { password: secret } }) }),
  'the cause of an error': (log) => log.error(new Error('outer', { cause: new Error(`password=${secret}`) })),
  'the message of an error with its own': (log) => log.error(new Error(`password=${secret}`), 'failed'),
  'several errors': (log) => log.error({ err: new AggregateError([new Error(`Bearer ${secret}`)], 'all') }),
  'an AWS signature': (log) =>
    log.info(`AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=${Buffer.from(secret).toString('hex')}`),
  'a private key': (log) => log.info({ pem: `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----` }),
};

function linesOf(make: (write: (line: string) => void) => Logger, use: (log: Logger) => void): string {
  let lines = '';
  use(
    make((line) => {
      lines += line;
    }),
  );
  return lines;
}

const shows = (lines: string): boolean => lines.includes(secret) || lines.includes(Buffer.from(secret).toString('hex'));

describe.each(['json', 'pretty'] as const)('createLogger (%s)', (format) => {
  const ours = (write: (line: string) => void): Logger =>
    createLogger({ level: 'debug', format, destination: { write } });

  it.each(Object.entries(leaks))('keeps a secret out: %s', (_, leak) => {
    // The control: the same call on a bare logger shows the secret, so the channel is open.
    const bare = linesOf(
      (write) => pino({ level: 'debug', serializers: { headers: spread, env: spread } }, { write }),
      leak,
    );
    expect(shows(bare)).toBe(true);
    const lines = linesOf(ours, leak);
    expect(shows(lines)).toBe(false);
    expect(lines).toContain('[redacted]');
  });

  it('writes what is no secret as it is', () => {
    const lines = linesOf(ours, (log) =>
      log.info(
        { inputTokens: 12, maxTokens: 5, credentialProviderArn: 'arn:p', requestId: 'r-1', tokenCount: 3 },
        'invoked',
      ),
    );
    for (const shown of ['12', '5', 'arn:p', 'r-1', '3', 'invoked']) expect(lines).toContain(shown);
    expect(lines).not.toContain('[redacted]');
  });

  it('looks for secrets in linear time, also behind a run of spaces', { timeout: 10_000 }, () => {
    const spaces = ' '.repeat(60_000);
    const lines = linesOf(ours, (log) => {
      log.info({ said: `authorization:${spaces.slice(0, 1000)}${secret}` });
      for (let i = 0; i < 4; i += 1) log.info({ said: `authorization:${spaces}` });
    });
    expect(shows(lines)).toBe(false);
    expect(lines.match(/authorization/g)).toHaveLength(5);
  });

  it('survives whatever is logged', () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const throwing = {
      get boom(): never {
        throw new Error('getter');
      },
    };
    const lines = linesOf(ours, (log) => {
      log.info(cycle);
      log.info({
        deep: JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`),
        big: 10n,
        when: new Date(Number.NaN),
        bytes: new Uint8Array(9),
      });
      log.info({ throwing });
      log.info({ list: Array.from({ length: 1000 }, (_, index) => index) });
      log.info(undefined);
    });
    expect(lines.split('\n').length).toBeGreaterThanOrEqual(5);
    expect(lines.length).toBeLessThan(10_000);
  });

  it('logs any JSON without failing', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, text) => {
        expect(linesOf(ours, (log) => log.info({ value }, text))).not.toBe('');
      }),
      { numRuns: 200 },
    );
  });
});

/** The bare logger prints Headers and Map as {}; spread out they show what is in them. */
const spread = (value: unknown): unknown =>
  value instanceof Headers || value instanceof Map ? Object.fromEntries(value) : value;

describe('createLogger', () => {
  it('writes JSON lines with time, level name and message', () => {
    const line = linesOf(
      (write) => createLogger({ level: 'info', format: 'json', destination: { write } }),
      (log) => log.info({ a: 1 }, 'up'),
    );
    expect(JSON.parse(line)).toEqual({ level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), a: 1, msg: 'up' });
  });

  it('leaves out what is below its level', () => {
    expect(
      linesOf(
        (write) => createLogger({ level: 'warn', format: 'json', destination: { write } }),
        (log) => log.info('x'),
      ),
    ).toBe('');
  });

  it('shows people the stack of an error and its cause, and no control characters of others', () => {
    const lines = linesOf(
      (write) => createLogger({ level: 'info', format: 'pretty', destination: { write } }),
      (log) =>
        log.error({ err: new Error('outer', { cause: new Error('inner\x1b[2J') }), said: '\x1b]0;evil\x07' }, 'failed'),
    );
    expect(lines).toMatch(/error.*failed[\s\S]*Error: outer[\s\S]*caused by[\s\S]*Error: inner/);
    expect(lines).not.toContain('\x1b[2J');
    expect(lines).not.toContain('\x1b]0;');
  });

  it('is for people on a terminal and for programs elsewhere, unless told', () => {
    expect([
      logFormat('auto', true),
      logFormat('auto', false),
      logFormat('json', true),
      logFormat('pretty', false),
    ]).toEqual(['pretty', 'json', 'json', 'pretty']);
  });
});
