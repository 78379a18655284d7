import { lookup } from 'node:dns/promises';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createOidcDiscovery } from '../../../packages/platform/src/kernel/auth/oidc-discovery.ts';
import { systemClock } from '../../../packages/platform/src/kernel/clock.ts';
import { createImages } from '../../../packages/platform/src/kernel/images/index.ts';
import { createOutbound, type Outbound, refusalOf } from '../../../packages/platform/src/kernel/outbound/index.ts';
import { type Answer, openNameServer, type Zone } from './name-server.ts';

// Runs where /etc/resolv.conf names 127.0.0.1 and no wire leads out (rebinding.test.ts). Prints what came of each attempt, as JSON.

const PUBLIC = '1.2.3.4';
/** Addresses that a platform must not call, each with a server that answers. */
const INSIDE = ['127.0.0.1', '169.254.169.254', '10.0.0.1'];
const PORT = 8099;

const a = (...values: string[]): Answer => values.map((value) => ({ type: 'a', value }));
const aaaa = (...values: string[]): Answer => values.map((value) => ({ type: 'aaaa', value }));
const chain = (...names: string[]): { type: 'cname'; value: string }[] =>
  names.map((value) => ({ type: 'cname', value }));

/** By the first label of the name. */
const NAMES: Record<string, (type: 'a' | 'aaaa', times: number) => Answer> = {
  public: (type) => (type === 'a' ? a(PUBLIC) : []),
  loopback: (type) => (type === 'a' ? a('127.0.0.1') : []),
  metadata: (type) => (type === 'a' ? a('169.254.169.254') : []),
  private: (type) => (type === 'a' ? a('10.0.0.1') : []),
  any: (type) => (type === 'a' ? a('0.0.0.0') : []),
  many: (type) => (type === 'a' ? a('127.0.0.1', '10.0.0.1', '169.254.169.254') : []),
  mapped: (type) => (type === 'aaaa' ? aaaa('::ffff:7f00:1') : []),
  six: (type) => (type === 'aaaa' ? aaaa('::1') : []),
  local: (type) => (type === 'aaaa' ? aaaa('fe80::1') : []),
  chain: (type) =>
    type === 'a' ? ([...chain('one.test', 'two.test'), ...a('127.0.0.1')] as Answer) : chain('one.test', 'two.test'),
  // The first time public, afterwards inside, and each way round.
  flip: (type, times) => (type === 'a' ? a(times === 1 ? PUBLIC : '127.0.0.1') : []),
  flop: (type, times) => (type === 'a' ? a(times % 2 === 1 ? PUBLIC : '169.254.169.254') : []),
  mixed: (type) => (type === 'a' ? a('127.0.0.1', PUBLIC, '169.254.169.254') : aaaa('::1')),
  // Unknown to who asks first, inside for who asks again.
  late: (type, times) => (times === 1 ? 'unknown' : type === 'a' ? a('127.0.0.1') : []),
  half: (type) => (type === 'a' ? a('127.0.0.1') : 'unknown'),
  silent: () => 'silence',
};
const zone: Zone = (name, type, times) => NAMES[name.split(/[.-]/)[0] ?? '']?.(type, times) ?? 'unknown';

const heard: string[] = [];
const serve = (address: string, handle: (req: IncomingMessage, res: ServerResponse) => void): Promise<void> =>
  new Promise((resolve) => createServer(handle).listen(PORT, address, () => resolve()));

const says = (res: ServerResponse, text: string): void => void res.setHeader('connection', 'close').end(text);

async function answer(work: Promise<{ text(): Promise<string> }>): Promise<string> {
  try {
    return await (await work).text();
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'failed';
  }
}

await openNameServer(zone);
for (const address of [...INSIDE, '::1'])
  await serve(address, (req, res) => {
    heard.push(`${address} ${req.headers.host}`);
    says(res, 'inside');
  });
await serve(PUBLIC, (req, res) => {
  const to = new URL(req.url ?? '/', 'http://x').searchParams.get('to');
  if (to === null) return says(res, 'outside');
  res.writeHead(302, { location: to, connection: 'close' }).end();
});

const outbound = createOutbound({ clock: systemClock });
const at = (label: string): string => `http://${label}.test:${PORT}/`;
const guarded = (url: string): Promise<string> => answer(outbound.fetch(url));
const redirected = (url: string): string => `${at('public')}?to=${encodeURIComponent(url)}`;

// Controls: what nothing guards reaches the inside by each of these names.
const open: Record<string, string> = {};
for (const label of ['loopback', 'metadata', 'private', 'any', 'many', 'mapped', 'six', 'chain', 'half'])
  open[label] = await answer(fetch(at(label)));
open.late = await answer(fetch(at('late-c')).catch(() => fetch(at('late-c'))));
open.flip = [await answer(fetch(at('flip-c'))), await answer(fetch(at('flip-c')))].join(' then ');
open.redirect = await answer(fetch(redirected(at('loopback'))));
const controls = heard.length;

const held: Record<string, string> = { public: await guarded(at('public')) };
for (const label of ['loopback', 'metadata', 'private', 'any', 'many', 'mapped', 'six', 'local', 'chain', 'half']) {
  held[label] = await guarded(at(label));
  held[`${label} behind a redirect`] = await guarded(redirected(at(label)));
}
held.late = await guarded(at('late'));
held['late again'] = await guarded(at('late'));
held.mixed = await guarded(at('mixed'));
held.flip = [await guarded(at('flip')), await guarded(at('flip'))].join(' then ');
held['flip behind a redirect'] = [
  await guarded(redirected(at('flip-r'))),
  await guarded(redirected(at('flip-r'))),
].join(' then ');
held['flip between check and call'] = [
  (await refusalOf(outbound, at('flip-k'))) ?? 'allowed',
  await guarded(at('flip-k')),
].join(' then ');
const many = await Promise.all(Array.from({ length: 20 }, () => guarded(at('flop'))));
held['flop, twenty at once'] = [...new Set(many)].sort().join(', ');
for (const host of [
  'localhost',
  'localhost.',
  'LOCALHOST',
  '0x7f.1',
  '2130706433',
  '0177.0.0.1',
  '127.1',
  '①②⑦.⓪.⓪.①',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:127.0.0.1]',
  '[::127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[::]',
  '0',
])
  held[host] = await guarded(`http://${host}:${PORT}/`);

const reachedDirectly = heard.slice(controls);

// Those who call what a user names, each by names of its own: a name that flips does so for each of them.
async function reachedBy(way: Outbound, run: string): Promise<Record<string, number>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'dns-rebinding-images-'));
  const images = await createImages({ dataDir, clock: systemClock, log: pino({ enabled: false }), outbound: way });
  const discovery = createOidcDiscovery({ outbound: way, clock: systemClock, cooldownMs: 0 });
  const callers: Record<string, (label: string) => Promise<unknown>> = {
    'an identity provider': (label) => discovery.issuer(at(`${label}-jwt-${run}`)),
    'an identity provider that redirects': (label) => discovery.issuer(redirected(at(`${label}-jwt-r-${run}`))),
    'a registry': (label) => images.resolve(`${label}-oci-${run}.test:${PORT}/app:v1`),
  };
  const reached: Record<string, number> = {};
  for (const [name, call] of Object.entries(callers)) {
    const before = heard.length;
    for (const label of ['loopback', 'metadata', 'six', 'chain', 'flip']) {
      await call(label).catch(() => undefined);
      await call(label).catch(() => undefined);
    }
    reached[name] = heard.length - before;
  }
  await images.close();
  await rm(dataDir, { recursive: true, force: true });
  return reached;
}
const allowPrivate = ['127.0.0.0/8', '169.254.0.0/16', '::1/128'];
const callers = {
  open: await reachedBy(createOutbound({ clock: systemClock, allowPrivate }), 'open'),
  held: await reachedBy(outbound, 'held'),
};

// Names that nobody answers for: does who asks for another wait until they are given up?
const overtaken = async (resolve: (name: string) => Promise<unknown>): Promise<boolean> => {
  let givenUp = false;
  const silent = Array.from({ length: 8 }, (_, i) =>
    resolve(`silent-${i}.test`).then(
      () => undefined,
      () => {
        givenUp = true;
      },
    ),
  );
  await resolve('public.test');
  const first = !givenUp;
  await Promise.all(silent);
  return first;
};
const threads = await overtaken((name) => lookup(name, { all: true }));
const guard = await overtaken(outbound.resolve);

process.stdout.write(
  JSON.stringify({ open, held, callers, reachedInside: reachedDirectly, overtaken: { threads, guard } }),
);
process.exit(0);
