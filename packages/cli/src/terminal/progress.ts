import { Listr, ListrLogger, ProcessOutput } from 'listr2';
import { styled, type Terminal } from './terminal.ts';

/** One visible step. `say` changes the text beside its title while the step runs. The returned text appears when the step is done. */
export interface Step {
  title: string;
  run(say: (text: string) => void): Promise<string | undefined>;
}

/** Where nothing moves, of what a step says one line is shown so often. */
const PLAIN_MS = 10_000;

/**
 * Runs the steps in order and shows them on stderr: a live list in a terminal, elsewhere one plain line each, and of a long one what it
 * says, after a second and then at most every ten. Rejects with the first failure,
 * and before a step when the terminal's signal has aborted.
 */
export async function runSteps(terminal: Terminal, steps: Step[]): Promise<void> {
  const logger = new ListrLogger({
    processOutput: new ProcessOutput(terminal.stderr, terminal.stderr),
    useIcons: false,
  });
  const live = terminal.stderr.isTTY && terminal.stdout.isTTY;
  const tasks = steps.map((step) => ({
    title: step.title,
    task: async (_: unknown, task: { title: string; output: string }) => {
      terminal.signal.throwIfAborted();
      const done = await step.run((text) => {
        if (live) task.output = text;
      });
      if (done) task.title = `${step.title}: ${done}`;
    },
  }));
  if (live) {
    await new Listr(tasks, {
      renderer: 'default',
      registerSignalListeners: false,
      rendererOptions: { logger, showErrorMessage: false, collapseErrors: false },
    }).run();
    return;
  }
  for (const step of steps) {
    terminal.signal.throwIfAborted();
    let said: string | undefined;
    const slow = setTimeout(() => terminal.stderr.write(`${step.title}${said ? `: ${said}` : ''} …\n`), 1000);
    let last = performance.now();
    const say = (text: string): void => {
      said = text;
      if (performance.now() - last < PLAIN_MS) return;
      last = performance.now();
      terminal.stderr.write(`${step.title}: ${text}\n`);
    };
    try {
      const done = await step.run(say);
      terminal.stderr.write(`${step.title}${done ? `: ${done}` : ''}\n`);
    } finally {
      clearTimeout(slow);
    }
  }
}

/** Shows `text` and the seconds waited on stderr, from the first second on, until the returned function is called. */
export function patience(terminal: Terminal, text: string): () => void {
  let seconds = 0;
  const timer = setInterval(() => {
    seconds++;
    if (terminal.stderr.isTTY)
      terminal.stderr.write(`\r${styled(terminal, 'stderr', 'dim', `${text} … ${seconds} s`)}\x1b[K`);
    else if (seconds === 1) terminal.stderr.write(`${text} …\n`);
  }, 1000);
  return () => {
    clearInterval(timer);
    if (seconds > 0 && terminal.stderr.isTTY) terminal.stderr.write('\r\x1b[K');
    seconds = 0;
  };
}
