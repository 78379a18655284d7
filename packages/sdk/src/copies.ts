import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { closeSync, openSync, readSync } from 'node:fs';
import os from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const hooks: (() => void)[] = [];
/** A copy has a host name of its own. */
let known = os.hostname();

/**
 * Has `hook` called once in every process that began as the copy of a warm one, before its first request: to seed a generator of a library, or to drop what
 * must not be shared.
 */
export function onCopy(hook: () => void): void {
  hooks.push(hook);
}

/**
 * Gives `Math.random` and `node:crypto` entropy of the kernel, and calls the hooks, if this process has become a copy since it was asked last; says
 * whether it has. `AgentPlatformApp` asks at every request; a server of your own asks before it does anything else.
 */
export function reseedIfCopied(): boolean {
  const name = os.hostname();
  if (name === known) return false;
  known = name;
  const entropy = fromKernel(20);
  reseedMathRandom(entropy.readInt32LE(16));
  stirOpenSsl(entropy.subarray(0, 16));
  for (const hook of hooks) hook();
  return true;
}

/** Past OpenSSL, which has the same state in every copy. */
function fromKernel(bytes: number): Buffer {
  const file = openSync('/dev/urandom', 'r');
  try {
    const buffer = Buffer.alloc(bytes);
    readSync(file, buffer);
    return buffer;
  } finally {
    closeSync(file);
  }
}

/** The engine seeds a generator once for each context and never again: that of a new one takes the place of ours. */
function reseedMathRandom(seed: number): void {
  setFlagsFromString(`--random-seed=${seed === 0 ? 1 : seed}`);
  const random: () => number = runInNewContext('Math.random');
  // It is seeded by its first call.
  random();
  setFlagsFromString('--random-seed=0');
  Math.random = random;
}

/** UUIDs that Node keeps ready. */
const READY_UUIDS = 128;

/**
 * Node has no call to seed OpenSSL's generators. What they are asked for changes their state, though, and how much of it decides how: each bit of
 * `entropy` chooses between a short and a long question, to the generator of what is public and to that of keys.
 */
function stirOpenSsl(entropy: Uint8Array): void {
  for (const byte of entropy)
    for (let bit = 0; bit < 8; bit += 1) {
      const long = ((byte >> bit) & 1) === 1;
      randomBytes(long ? 32 : 16);
      if (long) generateKeyPairSync('x448');
      else generateKeyPairSync('x25519');
    }
  for (let given = 0; given < READY_UUIDS; given += 1) randomUUID();
}
