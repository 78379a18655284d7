import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { DiskRoom } from './disk-room.ts';
import { FakeClock } from './fake-clock.ts';
import { toServiceError } from './http/index.ts';
import { isDiskFull } from './system-error.ts';
import type { DiskSpace } from './watched-disk.ts';

const GIB = 2 ** 30;

async function setUp(space: DiskSpace, reserve = { bytes: 2 * GIB, percent: 5 }) {
  const clock = new FakeClock();
  const lines: { msg: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let failing = false;
  const look = async (): Promise<DiskSpace> => {
    if (failing) throw new Error('EIO');
    return { ...space };
  };
  const room = await DiskRoom.open({ path: '/data', reserve, clock, log, look });
  return { clock, lines, room, fail: () => (failing = true) };
}

it('stops what is new below the reserve, once says so, and goes on by itself when there is clearly room', async () => {
  const space = { free: 3 * GIB, total: 100 * GIB };
  const { clock, lines, room } = await setUp(space);
  room.need();
  space.free = 2 * GIB - 1;
  await clock.advance(1000);
  expect(room.need).toThrow('The disk of the server is nearly full: 2047 MiB are free, and 2048 MiB stay so.');
  await clock.advance(5000);
  // To and fro at the mark is no room.
  space.free = 2.2 * GIB;
  await clock.advance(1000);
  expect(room.low).toBe(true);
  space.free = 2.6 * GIB;
  await clock.advance(1000);
  room.need();
  expect(lines.map(({ msg }) => msg)).toEqual([
    'the disk is nearly full: nothing new is written until there is room',
    'the disk has room again',
  ]);
  room.close();
});

it('has its last half for those who can free some', async () => {
  const space = { free: 2 * GIB - 1, total: 100 * GIB };
  const { clock, room } = await setUp(space);
  expect(room.low).toBe(true);
  room.needLast();
  space.free = GIB - 1;
  await clock.advance(1000);
  expect(room.needLast).toThrow('1023 MiB are free');
  const { room: unbounded } = await setUp({ free: 0, total: 100 * GIB }, { bytes: 0, percent: 5 });
  unbounded.needLast();
});

it('has room made at each look of its last half, until there is some, and never with nothing kept free', async () => {
  const space = { free: 2 * GIB - 1, total: 100 * GIB };
  const { clock, room } = await setUp(space);
  let relieved = 0;
  room.relieveBy(async () => {
    relieved += 1;
  });
  await clock.advance(1000);
  expect(relieved).toBe(0);
  space.free = GIB - 1;
  await clock.advance(200);
  expect(relieved).toBe(2);
  space.free = GIB;
  await clock.advance(1000);
  expect(relieved).toBe(2);
  const { clock: other, room: unbounded } = await setUp({ free: 0, total: 100 * GIB }, { bytes: 0, percent: 5 });
  unbounded.relieveBy(async () => {
    relieved += 1;
  });
  await other.advance(5000);
  expect(relieved).toBe(2);
});

it('makes room before anything is written: until half of the reserve is free, or nothing is left to free', async () => {
  const space = { free: 0, total: 100 * GIB };
  const { room } = await setUp(space);
  let asked = 0;
  const freeing = (bytes: number) => async (): Promise<boolean> => {
    asked += 1;
    space.free += bytes;
    return bytes > 0;
  };
  await room.makeRoom(freeing(0));
  expect(asked).toBe(1);
  await room.makeRoom(freeing(GIB / 2));
  expect(asked).toBe(3);
  await room.makeRoom(freeing(GIB));
  expect(asked).toBe(3);
});

it('keeps the smaller of bytes and percent, and nothing where either is 0', async () => {
  expect((await setUp({ free: GIB, total: 10 * GIB })).room.report()).toEqual({
    free: GIB,
    total: 10 * GIB,
    reserve: GIB / 2,
    low: false,
    others: [],
  });
  expect((await setUp({ free: 0, total: 10 * GIB }, { bytes: 0, percent: 5 })).room.low).toBe(false);
  expect((await setUp({ free: 0, total: 10 * GIB }, { bytes: GIB, percent: 0 })).room.low).toBe(false);
});

it('is low from the start where it is, and keeps what it knew when a look fails', async () => {
  const space = { free: 0, total: 10 * GIB };
  const { clock, room, fail, lines } = await setUp(space);
  expect(room.low).toBe(true);
  fail();
  await clock.advance(3000);
  expect(room.low).toBe(true);
  // The first word on it, and one at each look.
  expect(lines).toHaveLength(31);
});

it('counts as a full disk wherever one is told, and names the setting to a client', async () => {
  const { room } = await setUp({ free: 0, total: 10 * GIB });
  let thrown: unknown;
  try {
    room.need();
  } catch (error) {
    thrown = error;
  }
  expect(isDiskFull(thrown)).toBe(true);
  expect(toServiceError(thrown)).toMatchObject({
    code: 'ServiceUnavailableException',
    status: 503,
    wireMessage:
      'The disk of the server is nearly full: 0 MiB are free, and 512 MiB stay so. Free space, or lower disk.reserveBytes; nothing needs to be restarted.',
  });
});

describe('disks of other places', () => {
  const spaces: Record<string, DiskSpace> = {};
  const open = async () => {
    for (const path of ['/data', '/cache', '/shared']) spaces[path] = { free: 50 * GIB, total: 100 * GIB };
    const clock = new FakeClock();
    const devices: Record<string, number> = {
      '/data': 1,
      '/data/cache': 1,
      '/cache': 2,
      '/cache/more': 2,
      '/shared': 3,
    };
    const room = await DiskRoom.open({
      ...{ path: '/data', reserve: { bytes: 2 * GIB, percent: 5 }, clock, log: pino({ enabled: false }) },
      look: async (path) => ({ free: 0, total: 0, ...spaces[path] }),
      device: async (path) => devices[path],
    });
    await room.watch({ of: 'the cache', path: '/cache', own: true });
    await room.watch({ of: 'a shared place', path: '/shared', own: false });
    return { room, clock };
  };
  const fill = (path: string): void => {
    spaces[path] = { free: GIB / 2, total: 100 * GIB };
  };

  it('stop what is new where the platform writes on them, by their name, and make nobody wait or end', async () => {
    const { room, clock } = await open();
    let relieved = 0;
    room.relieveBy(async () => {
      relieved += 1;
    });
    room.need();
    fill('/cache');
    await clock.advance(1000);
    expect(room.need).toThrow('The disk of the cache is nearly full: 512 MiB are free, and 2048 MiB stay so.');
    expect(room.low).toBe(true);
    room.needLast();
    expect(relieved).toBe(0);
    expect(room.report()).toMatchObject({ low: false, others: [{ of: 'the cache', low: true }, { low: false }] });
    room.close();
  });

  it('are told, and stop nothing, where agents alone write on them', async () => {
    const { room, clock } = await open();
    fill('/shared');
    await clock.advance(1000);
    room.need();
    expect(room.report().others).toMatchObject([{ low: false }, { of: 'a shared place', low: true }]);
    room.close();
  });

  it('are watched once each, and not where there is nothing', async () => {
    const { room } = await open();
    for (const path of ['/data/cache', '/cache/more', '/none']) await room.watch({ of: path, path, own: true });
    expect(room.report().others.map(({ of }) => of)).toEqual(['the cache', 'a shared place']);
    room.close();
  });
});
