import { command } from '../command.ts';
import { checkPortFree, type LocalAgent, startAgent, untilAnswering } from '../dev/local-agent.ts';
import { nextChange } from '../dev/watch-project.ts';
import { explain } from '../explain.ts';
import { requireProject } from '../project/load-project.ts';
import { note, print, styled, type Terminal, typed } from '../terminal/terminal.ts';
import { portOption } from './options.ts';

export function devCommand(terminal: Terminal) {
  return command('dev', {
    summary: 'Run the agent in this folder on this machine, and restart it on every change.',
    details:
      'There is no isolation here: the agent runs as you. Its output goes to stderr; the address to stdout. Ends with Ctrl-C.',
    examples: [
      { does: 'run it on port 8080', line: 'agentcore dev' },
      { does: 'call it, from another terminal', line: `agentcore invoke '{"prompt":"hi"}' --local` },
    ],
  })
    .option('--port <port>', 'port to listen on (default: 8080)', portOption, 8080)
    .action(async (options) => {
      await checkPortFree(options.port);
      await runUntilInterrupted(terminal, options.port, () => announce(terminal, options.port, options.json));
    });
}

async function runUntilInterrupted(terminal: Terminal, port: number, onFirst: () => void): Promise<void> {
  const { signal } = terminal;
  const say = (text: string): void => note(terminal, styled(terminal, 'stderr', 'dim', text));
  // Read again each time round: agentcore.json is one of the files that change.
  let project = await requireProject(terminal.cwd);
  for (let starts = 0; !signal.aborted; starts++) {
    // Watching begins before building, so that no change falls between the two.
    const change = nextChange(project, signal);
    let agent: LocalAgent | undefined;
    let stopping = false;
    try {
      project = await requireProject(terminal.cwd);
      const installing = once(() => say('Installing what requirements.txt names …'));
      agent = await startAgent(project, { port, signal, say: installing });
    } catch (error) {
      if (starts === 0 || signal.aborted) throw error;
      const { message, remedy } = explain(error);
      note(terminal, `${message}${remedy ? `\n${typed(terminal, remedy)}` : ''}`);
    }
    if (agent) {
      void agent.exited.then(
        (status) => stopping || signal.aborted || say(`The agent ended (${status}); waiting for a change.`),
      );
      const up = await untilAnswering(agent, port, change);
      if (up && starts === 0) onFirst();
      else if (up) say('Restarted.');
    } else say('Waiting for a change.');
    await change;
    stopping = true;
    await agent?.stop();
  }
}

function once(run: () => void): () => void {
  let left = 1;
  return () => {
    if (left-- > 0) run();
  };
}

function announce(terminal: Terminal, port: number, json: boolean | undefined): void {
  const url = `http://127.0.0.1:${port}`;
  print(terminal, json ? JSON.stringify({ url, port }) : url);
  const local = port === 8080 ? '' : ` ${port}`;
  note(
    terminal,
    typed(
      terminal,
      `Call it:  agentcore invoke '{"prompt":"hi"}' --local${local}\nIt restarts when a file changes; Ctrl-C ends it.`,
    ),
  );
}
