import { setTimeout as sleep } from 'node:timers/promises';
import { DueCuts } from './due-cuts.ts';
import type { Messages, Route } from './messages.ts';
import type { Random } from './random.ts';
import { type Attempt, RudeClient } from './rude-client.ts';
import { cpuSecondsOf } from './server-state.ts';

export interface RoundsOptions {
  /** Whether to go on, asked before each round of attempts. */
  goOn(account: RoundsAccount): boolean;
  onRound?(account: RoundsAccount): void;
  /** Brings back, before each round, what the last one may have ended. */
  renew?(): Promise<void>;
  /** So much of a core the clients and the server take together, on the whole; as much as there is without it. */
  cores?: number;
  random: Random;
  messages: Messages;
  routes: readonly Route[];
}

/** A server on this machine. */
export interface Victim {
  /** Where it tells, at `/metrics`, of errors that only the last line of defence has met. */
  endpoint: string;
  pid: number;
  /** Its listeners on the loopback interface. */
  ports: readonly number[];
  /** The one of them that speaks TLS. */
  tlsPort?: number | undefined;
}

export interface RoundsAccount {
  attempts: number;
  /** How many routes there are; each has its turn before one has another. */
  routes: number;
  /** Every route × every place to cut × every rude ending, how many of these were made, and whether every route has had every place and every ending. */
  combinations: Readonly<Pick<DueCuts, 'all' | 'made' | 'everyRoute'>>;
  /** After these the server answered as before. */
  held: number;
  /** How often the server ended. */
  exits: number;
  /** Errors that only the last line of defence met. */
  unhandled: number;
  /** How often each protocol was spoken, and whether over TLS. */
  ways: Readonly<Record<string, number>>;
  /** Where TLS was cut, as `describeCut` says it. */
  cuts: ReadonlySet<string>;
  /** The most that the server worked for one round, in seconds: what a pattern that goes back and back would take. */
  mostCpuSeconds: number;
  /** What was under way when something went wrong. */
  suspects: Attempt[];
}

/** Attempts at once; the server is asked between rounds. */
const ROUND = 64;

/** Rude clients on every route in turn, until nobody wants more or the server has ended. */
export async function rudeRounds(victim: Victim, options: RoundsOptions): Promise<RoundsAccount> {
  const { random, messages, routes, goOn, onRound, renew } = options;
  const rude = new RudeClient(random);
  const due = new DueCuts(routes);
  const ways: Record<string, number> = {};
  const account = { attempts: 0, routes: routes.length, held: 0, exits: 0, unhandled: 0, mostCpuSeconds: 0 };
  const told: RoundsAccount = Object.assign(account, { ways, cuts: rude.cuts, suspects: [], combinations: due });
  const pace = await Pace.from(victim.pid, options.cores);
  const main = Number(new URL(victim.endpoint).port);
  while (account.exits === 0 && goOn(told)) {
    // A server that has ended is noticed behind the round.
    await renew?.().catch(() => undefined);
    const round: Promise<Attempt>[] = [];
    for (let n = 0; n < ROUND; n += 1) {
      const route = routes[(account.attempts + n) % routes.length] ?? random.pick(routes);
      const message = await messages.make(route, due.wantsBody(route));
      const port = random.below(4) === 0 ? random.pick(victim.ports) : main;
      const secure = port === victim.tlsPort && random.below(4) > 0;
      const way = `${message.protocol}${secure ? ' over TLS' : ''}`;
      ways[way] = (ways[way] ?? 0) + 1;
      const address = { host: '127.0.0.1', port };
      // What makes sense is said to its end as often as it is cut by turns.
      const byChance = secure || (message.sound && random.below(2) === 0);
      const cut = byChance ? undefined : due.of(route, message);
      const attempt = secure ? rude.attemptSecurely(address, message) : rude.attempt(address, message, cut);
      round.push(
        attempt.then((made) => {
          if (cut) due.take(route, cut);
          return made;
        }),
      );
    }
    const done = await Promise.allSettled(round);
    account.attempts += ROUND;
    const unhandled = await unhandledErrors(victim).catch(() => undefined);
    if (unhandled === undefined) account.exits += 1;
    else account.held += done.filter(({ status }) => status === 'fulfilled').length;
    if (unhandled === undefined || unhandled > account.unhandled)
      told.suspects.push(...done.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
    account.unhandled = unhandled ?? account.unhandled;
    if (unhandled !== undefined) account.mostCpuSeconds = Math.max(account.mostCpuSeconds, await pace.round());
    onRound?.(told);
  }
  rude.close();
  return told;
}

/** Keeps this process and a server to a share of the machine. */
class Pace {
  readonly #pid: number;
  readonly #cores: number;
  readonly #begunMs = performance.now();
  readonly #ownBefore = process.cpuUsage();
  readonly #before: number;
  #last: number;

  private constructor(pid: number, cores: number, before: number) {
    this.#pid = pid;
    this.#cores = cores;
    this.#before = before;
    this.#last = before;
  }

  static async from(pid: number, cores = Number.POSITIVE_INFINITY): Promise<Pace> {
    return new Pace(pid, cores, await cpuSecondsOf(pid));
  }

  /** Waits until no more than the share was taken; says how many seconds the server has worked since the last round. */
  async round(): Promise<number> {
    const now = await cpuSecondsOf(this.#pid);
    const own = process.cpuUsage(this.#ownBefore);
    const taken = now - this.#before + (own.user + own.system) / 1e6;
    const ahead = taken / this.#cores - (performance.now() - this.#begunMs) / 1000;
    if (ahead > 0) await sleep(ahead * 1000);
    const since = now - this.#last;
    this.#last = now;
    return since;
  }
}

/** Asked on a connection of its own; rejects when nobody answers. */
async function unhandledErrors({ endpoint }: Victim): Promise<number> {
  const answer = await fetch(`${endpoint}/metrics`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(60_000),
  });
  const [, count] = /^agentplatform_unhandled_errors (\d+)$/m.exec(await answer.text()) ?? [];
  if (count === undefined) throw new Error(`metrics were answered with ${answer.status}`);
  return Number(count);
}
