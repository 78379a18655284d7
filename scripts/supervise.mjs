import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/** Before each start again, in ms: at once after a good time, then longer and longer while it keeps ending; the last goes on for ever. */
const PAUSES_MS = [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000];
/** Who has served for so long had a good time. */
const GOOD_MS = 60_000;
/** Exit status of a wrong configuration (serve.ts): it is no better the next time. */
const MISCONFIGURED = 2;
/**
 * How glibc allots memory in the server, unless the environment says otherwise. By itself it keeps what its threads have freed in arenas of
 * up to 64 MiB each, eight for every processor, and the mark above which it gives memory back grows with what was freed; both cost some
 * 80 MB at rest. It reads them when a process begins, so they are said here (docs/benchmarks.md, "footprint").
 */
export const ALLOCATION = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/**
 * Runs the server in `script` and starts it again whenever it ends unasked, once it has served (ADR 19). A start that fails before that, an
 * orderly end and a wrong configuration end this process in the same way. SIGTERM, SIGINT and SIGHUP are passed on as a wish to end,
 * and so is the end of whoever started this process over a channel. The server says by a message on which ports it serves; the next
 * one is told, and how often it was started again (`life.ts`).
 */
export function supervise(script, args, { pausesMs = PAUSES_MS, goodMs = GOOD_MS } = {}) {
  let child;
  let waiting;
  let stopped;
  let served;
  let servedSince;
  let restarts = 0;
  let bad = 0;

  const start = (lastEnd) => {
    waiting = undefined;
    servedSince = undefined;
    const life = served && JSON.stringify({ restarts, lastEnd, ports: served });
    child = spawn(process.execPath, [...process.execArgv, script, ...args], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: { ...ALLOCATION, ...process.env, ...(life && { SUPERVISED_LIFE: life }) },
    });
    child.on('message', ({ serving }) => {
      served = serving;
      servedSince = performance.now();
    });
    // It could not be started: the machine has no room for it just now.
    child.on('error', (error) => (child.pid === undefined ? ended(1, null, error.message) : say(error.message)));
    child.on('exit', (status, signal) => ended(status, signal, signal ?? `status ${status}`));
  };

  const ended = (status, signal, how) => {
    if (stopped || !served || status === 0 || status === MISCONFIGURED) return end(status, signal);
    if (servedSince !== undefined && performance.now() - servedSince >= goodMs) bad = 0;
    const pauseMs = pausesMs[Math.min(bad, pausesMs.length - 1)];
    bad += 1;
    restarts += 1;
    say(
      `ended unasked (${how}) and is started again ${pauseMs ? `in ${pauseMs / 1000} s` : 'at once'}: restart ${restarts}`,
    );
    waiting = setTimeout(start, pauseMs, how);
  };

  const stop = (signal) => {
    stopped = signal;
    if (waiting) {
      clearTimeout(waiting);
      end(null, signal);
    } else child.kill(signal);
  };
  // Who started this may have stopped reading; that ends nobody.
  process.stderr.on('error', () => {});
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stop(signal));
  // To the server it would be a sudden end.
  process.on('SIGHUP', () => stop('SIGTERM'));
  if (process.channel) {
    process.on('disconnect', () => stop('SIGTERM'));
    process.channel.unref();
  }
  start();
}

/** Ends as the server did. */
function end(status, signal) {
  if (signal === null) {
    process.exitCode = status;
    if (process.channel) process.disconnect();
    return;
  }
  process.exitCode = 128 + constants.signals[signal];
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

function say(what) {
  process.stderr.write(`${new Date().toISOString()} the server ${what}\n`);
}
