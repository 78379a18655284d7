import { Command, type CommandUnknownOpts } from '@commander-js/extra-typings';

export interface Example {
  /** What it does, a few words. */
  does: string;
  /** The command line as it is typed. */
  line: string;
}

export interface CommandText {
  /** One sentence for lists of commands. */
  summary: string;
  /** More, for the command's own help page. */
  details?: string;
  examples: Example[];
}

const examples = new WeakMap<object, Example[]>();

/** The examples of a command; help and docs/cli.md are both made from them. */
export function examplesOf(command: CommandUnknownOpts): Example[] {
  return examples.get(command) ?? [];
}

/** A command with what every one of them has: --json, --debug, and its examples in its help. */
export function command(name: string, text: CommandText) {
  const made = new Command(name)
    .summary(text.summary)
    .description(text.details ? `${text.summary}\n\n${text.details}` : text.summary)
    .option('--json', 'print the result as JSON')
    .option('--debug', 'show the whole error, with its stack, when something fails');
  examples.set(made, text.examples);
  const lines = text.examples.map(({ does, line }) => `  ${line}\n      ${does}`).join('\n');
  if (lines) made.addHelpText('after', `\nExamples:\n${lines}`);
  return made;
}

/** A command that talks to a platform: also --endpoint and --profile. */
export function platformCommand(name: string, text: CommandText) {
  return command(name, text)
    .option(
      '--endpoint <url>',
      'address of the platform (default: AWS_ENDPOINT_URL, else the platform whose credentials file AWS_SHARED_CREDENTIALS_FILE names, else the nearest .agentplatform/connection.json)',
    )
    .option('--profile <name>', 'profile in the shared credentials file to sign with');
}

/** A command that only holds others. */
export function commandGroup(name: string, summary: string, members: CommandUnknownOpts[]) {
  const group = new Command(name).summary(summary).description(summary);
  for (const member of members) group.addCommand(member);
  return group;
}
