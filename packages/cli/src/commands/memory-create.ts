import type { MemoryStrategyInput } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { findConnection } from '../platform/connection.ts';
import { print, printJson, type Terminal } from '../terminal/terminal.ts';

/** The strategies that can be named on the command line, each under its own name. */
const STRATEGIES: Record<string, MemoryStrategyInput> = {
  semantic: { semanticMemoryStrategy: { name: 'semantic' } },
  preference: { userPreferenceMemoryStrategy: { name: 'preference' } },
  summary: { summaryMemoryStrategy: { name: 'summary' } },
  episodic: { episodicMemoryStrategy: { name: 'episodic' } },
};

export function createMemoryCommand(terminal: Terminal) {
  return platformCommand('create', {
    summary: 'Create a memory.',
    examples: [
      { does: 'a log of events only', line: 'agentcore memory create support' },
      {
        does: 'with facts and summaries of what is said',
        line: 'agentcore memory create support --strategies semantic,summary',
      },
    ],
  })
    .argument('<name>', 'name: a letter, then letters, digits and _')
    .option('--expiry <days>', 'days that events are kept, 3 to 365', '90')
    .option('--strategies <list>', `records to make of events: ${Object.keys(STRATEGIES).join(', ')}`)
    .action(async (name, options) => {
      const memoryStrategies = (options.strategies?.split(',') ?? []).map((word) => {
        const strategy = STRATEGIES[word.trim()];
        if (strategy) return strategy;
        throw new CliError(
          'usage',
          `There is no strategy "${word.trim()}". There are: ${Object.keys(STRATEGIES).join(', ')}.`,
        );
      });
      const { CreateMemoryCommand } = await import('@aws-sdk/client-bedrock-agentcore-control');
      const client = await controlClient(await findConnection(terminal, options));
      const eventExpiryDuration = Number(options.expiry);
      const { memory } = await client.send(new CreateMemoryCommand({ name, eventExpiryDuration, memoryStrategies }));
      if (options.json) printJson(terminal, memory ?? {});
      else print(terminal, memory?.id ?? '');
    });
}
