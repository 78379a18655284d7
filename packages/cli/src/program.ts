import { Command } from '@commander-js/extra-typings';
import { CliError } from './cli-error.ts';
import { auditCommand } from './commands/audit.ts';
import { browserCommand } from './commands/browser.ts';
import { codeCommand } from './commands/code.ts';
import { createCommand } from './commands/create.ts';
import { deployCommand } from './commands/deploy.ts';
import { destroyCommand } from './commands/destroy.ts';
import { devCommand } from './commands/dev.ts';
import { doctorCommand } from './commands/doctor.ts';
import { envCommand } from './commands/env.ts';
import { functionCommand } from './commands/function.ts';
import { gatewayCommand } from './commands/gateway.ts';
import { addCommand } from './commands/gateway-add.ts';
import { iamCommand } from './commands/iam.ts';
import { identityCommand } from './commands/identity.ts';
import { imageRegistryCommand } from './commands/image-registry.ts';
import { invokeCommand } from './commands/invoke.ts';
import { keyCommand } from './commands/key.ts';
import { listCommand } from './commands/list.ts';
import { logsCommand } from './commands/logs.ts';
import { memoryCommand } from './commands/memory.ts';
import { policyCommand } from './commands/policy.ts';
import { secretCommand } from './commands/secret.ts';
import { shellCommand } from './commands/shell.ts';
import { statusCommand } from './commands/status.ts';
import { stopSessionCommand } from './commands/stop-session.ts';
import { tracesCommand } from './commands/traces.ts';
import { usageCommand } from './commands/usage.ts';
import { waitCommand } from './commands/wait.ts';
import { exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal/terminal.ts';
import { version } from './version.ts';

/** The whole command tree; help, docs/cli.md and typo suggestions come from it. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command('agentcore')
    .description('Create, run, deploy and invoke agents on the platform.')
    .version(version, '-v, --version')
    .showSuggestionAfterError()
    .addHelpText('after', `\nExit status:\n${exitLines().join('\n')}`);
  const commands = [
    createCommand,
    devCommand,
    deployCommand,
    invokeCommand,
    codeCommand,
    shellCommand,
    stopSessionCommand,
    logsCommand,
    statusCommand,
    listCommand,
    usageCommand,
    destroyCommand,
    doctorCommand,
    waitCommand,
    envCommand,
  ];
  for (const make of commands) program.addCommand(make(terminal));
  program.addCommand(addCommand(terminal));
  program.addCommand(gatewayCommand(terminal));
  program.addCommand(policyCommand(terminal));
  program.addCommand(functionCommand(terminal));
  program.addCommand(memoryCommand(terminal));
  program.addCommand(browserCommand(terminal));
  program.addCommand(secretCommand(terminal));
  program.addCommand(keyCommand(terminal));
  program.addCommand(identityCommand(terminal));
  program.addCommand(imageRegistryCommand(terminal));
  program.addCommand(tracesCommand(terminal));
  program.addCommand(auditCommand(terminal));
  program.addCommand(iamCommand(terminal));
  program.hook('preAction', (_, { registeredArguments, args }) => {
    // As from a variable of a shell that is not set; none of them means anything by it.
    const empty = registeredArguments.findIndex((_argument, index) => args[index] === '');
    if (empty !== -1) throw new CliError('usage', `The argument ${registeredArguments[empty]?.name()} is empty.`);
  });
  return program;
}

function exitLines(): string[] {
  return Object.values(exitCodes).map(({ status, meaning }) => `  ${String(status).padStart(3)}  ${meaning}`);
}
