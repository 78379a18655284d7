import { lookup, Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { hostname as ownName } from 'node:os';
import { BoundedQueue } from '../bounded-queue.ts';
import { SingleFlight } from '../single-flight.ts';
import { errorCode, orMissing } from '../system-error.ts';
import type { Resolve, ResolvedAddress } from './resolver.ts';

/** The machine's own names (hosts(5)). */
const HOSTS = '/etc/hosts';
/** Which name servers are asked, and by which search list (resolv.conf(5)). */
const RESOLV_CONF = '/etc/resolv.conf';
/** Of one question to a name server; each is asked twice. */
const QUESTION_MS = 2_500;
/** Of lookups that take a thread; more wait, one for all who want the same name. */
const THREADS = { running: 1, waiting: 256 };
/** What the name servers say of a name that may still be known to the machine: by a search list, by mDNS. */
const UNKNOWN = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'EBADNAME']);

/** What is asked; others in tests. */
export interface SystemResolveDeps {
  /** The name servers. */
  ask(hostname: string, signal?: AbortSignal): Promise<ResolvedAddress[]>;
  /** getaddrinfo(3), which takes a thread. */
  lookup(hostname: string): Promise<ResolvedAddress[]>;
  /** A file of the machine, empty when there is none. */
  read(path: string): Promise<string>;
}

const system: SystemResolveDeps = {
  ask,
  lookup: async (hostname) =>
    (await lookup(hostname, { all: true, order: 'verbatim' })).map(({ address }) => resolved(address)),
  read: async (path) => (await orMissing(readFile(path, 'utf8'))) ?? '',
};

/**
 * The machine's own resolver. Its name servers are asked without a thread: getaddrinfo(3) holds one of a few, so that names whose servers
 * never answer would keep everybody else from resolving anything. It is asked where it can know what those do not, one name at a time.
 */
export function createSystemResolve(deps: SystemResolveDeps = system): Resolve {
  const lookups = new SingleFlight<ResolvedAddress[]>();
  const threads = new BoundedQueue(THREADS);
  return async (hostname, signal) => {
    const own = namedIn(await deps.read(HOSTS), hostname);
    if (own.length > 0) return own;
    try {
      return await deps.ask(hostname, signal);
    } catch (error) {
      const code = errorCode(error) ?? '';
      if (!UNKNOWN.has(code)) throw error;
      // Servers that cannot be reached have not been asked.
      const more = code === 'ECONNREFUSED' || isLocal(hostname) || isSearched(hostname, await deps.read(RESOLV_CONF));
      if (!more) throw error;
    }
    return lookups.run(hostname, (gaveUp) => threads.run(() => deps.lookup(hostname), gaveUp), signal);
  };
}

/** Whether the name is one of the machine or of its neighbours, which no name server has to know. */
function isLocal(hostname: string): boolean {
  return !hostname.replace(/\.$/, '').includes('.') || /\.(?:local|localhost)\.?$/i.test(hostname);
}

/** Whether a search list may add a domain to the name; without one it is that of the machine's own name. */
function isSearched(hostname: string, conf: string): boolean {
  if (hostname.endsWith('.')) return false;
  const lists = conf.split('\n').filter((line) => /^\s*(?:search|domain)\s/.test(line));
  if (lists.length === 0) return ownName().includes('.');
  return lists.some((line) =>
    line
      .trim()
      .split(/\s+/)
      .slice(1)
      .some((domain) => domain !== '.'),
  );
}

/** All addresses, version 4 first: a machine without the other still connects at once. Rejects with why there are none. */
async function ask(hostname: string, signal?: AbortSignal): Promise<ResolvedAddress[]> {
  // Anew each time, for the machine's name servers change.
  const resolver = new Resolver({ timeout: QUESTION_MS, tries: 2 });
  const cancel = (): void => resolver.cancel();
  signal?.addEventListener('abort', cancel, { once: true });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  signal?.removeEventListener('abort', cancel);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const failures = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  if (found.length > 0) return found.map(resolved);
  throw failures.find((failure) => !UNKNOWN.has(errorCode(failure) ?? '')) ?? failures[0];
}

function namedIn(hosts: string, hostname: string): ResolvedAddress[] {
  const wanted = hostname.toLowerCase().replace(/\.$/, '');
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) && names.some((name) => name.toLowerCase() === wanted) ? [resolved(address)] : [];
  });
}

function resolved(address: string): ResolvedAddress {
  return { address, family: isIP(address) === 6 ? 6 : 4 };
}
