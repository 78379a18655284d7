import { setTimeout as sleep } from 'node:timers/promises';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { findConnection } from '../platform/connection.ts';
import { askPreparations, type Preparation } from '../platform/preparations.ts';
import { harmless, note, printJson, styled, type Terminal } from '../terminal/terminal.ts';
import { secondsOption } from './options.ts';

const ASK_EVERY_MS = 1_000;
/** Where stderr is no terminal, so often a line. */
const SAY_EVERY_MS = 15_000;

export function waitCommand(terminal: Terminal) {
  return platformCommand('wait', {
    summary: 'Wait until the platform has prepared its images and models in the background.',
    details:
      'These are the images of code-interpreter sessions, and the model that memory searches with. A machine makes or fetches them once. Exit status 0: all is ready. 1: something failed, or the time is over.',
    examples: [
      { does: 'wait until sessions have pandas and memory searches by meaning', line: 'agentcore wait' },
      { does: 'only look', line: 'agentcore wait --timeout 0 --json' },
    ],
  })
    .option('--timeout <seconds>', 'how long to wait at most', secondsOption, 900)
    .action(async (options) => {
      const connection = await findConnection(terminal, options);
      const until = performance.now() + options.timeout * 1000;
      const shown = show(terminal);
      let found = await askPreparations(connection, terminal.signal);
      while (found.some(underWay) && performance.now() < until) {
        shown.now(found.filter(underWay));
        await sleep(ASK_EVERY_MS, undefined, { signal: terminal.signal });
        found = await askPreparations(connection, terminal.signal);
      }
      shown.end();
      if (options.json) printJson(terminal, { preparations: found });
      else for (const one of found) note(terminal, harmless(`${one.what}: ${one.state}, ${one.seconds} s`));
      const [amiss] = found.filter(({ state }) => state !== 'ready');
      if (amiss) throw new CliError('failure', `${amiss.what}: ${amiss.state} (${amiss.step}).`, remedyOf(amiss));
    });
}

const underWay = ({ state }: Preparation): boolean => state === 'under way';

function remedyOf({ state, seconds: so, usualSeconds }: Preparation): string {
  return state === 'failed'
    ? 'The platform tries again when it is needed. Its log says more.'
    : `For ${so} s so far; it usually takes about ${usualSeconds} s.`;
}

/** Says on stderr what is under way: in place on a terminal, as a line now and then elsewhere. */
function show({ stderr, ...terminal }: Terminal): { now(of: Preparation[]): void; end(): void } {
  let said = Number.NEGATIVE_INFINITY;
  return {
    now(of) {
      const parts = of.map(
        ({ what, step, seconds: so, usualSeconds }) => `${what}: ${step}, ${so} of ~${usualSeconds} s`,
      );
      const text = harmless(parts.join(' · '));
      if (stderr.isTTY)
        stderr.write(
          `\r${styled({ ...terminal, stderr }, 'stderr', 'dim', text.slice(0, (stderr.columns ?? 80) - 1))}\x1b[K`,
        );
      else if (performance.now() - said >= SAY_EVERY_MS) {
        said = performance.now();
        stderr.write(`${text}\n`);
      }
    },
    end() {
      if (stderr.isTTY) stderr.write('\r\x1b[K');
    },
  };
}
