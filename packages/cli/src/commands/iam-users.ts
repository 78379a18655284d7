import { platformCommand } from '../command.ts';
import { segment } from '../platform/admin.ts';
import { harmless, note, print, printJson, type Terminal, typed } from '../terminal/terminal.ts';
import { fieldOf, iamRequest, printDone, printList } from './iam-request.ts';

const user = (name: string): string => `/users/${segment(name)}`;
// Without a user, keys are those of the account itself.
const keysOf = (name: string | undefined): string => `${name === undefined ? '' : user(name)}/access-keys`;

export function whoamiCommand(terminal: Terminal) {
  return platformCommand('whoami', {
    summary: 'Show who you are to the platform.',
    examples: [{ does: 'account and name of the keys in use', line: 'agentcore iam whoami' }],
  }).action(async (options) => {
    const caller = await iamRequest(terminal, options, { path: '/caller' });
    if (options.json) printJson(terminal, caller);
    else print(terminal, harmless(String(fieldOf(caller, 'arn'))));
  });
}

export function usersCommand(terminal: Terminal) {
  return platformCommand('users', {
    summary: 'List the users.',
    examples: [{ does: 'users and the names of their policies', line: 'agentcore iam users' }],
  }).action(async (options) => {
    const value = await iamRequest(terminal, options, { path: '/users' });
    const none = typed(terminal, 'There are no users; make one with: agentcore iam create-user NAME');
    printList(terminal, options.json, value, { member: 'users', fields: ['userName', 'policies', 'createdAt'], none });
  });
}

export function createUserCommand(terminal: Terminal) {
  return platformCommand('create-user', {
    summary: 'Make a user. Until a policy allows it, the user may do nothing.',
    examples: [
      { does: 'a user', line: 'agentcore iam create-user ada' },
      { does: 'keys for that user', line: 'agentcore iam create-key ada' },
      { does: 'what the user may do', line: 'agentcore iam put-policy invoke invoke.json --user ada' },
    ],
  })
    .argument('<name>', 'name of the user')
    .action(async (name, options) => {
      const made = await iamRequest(terminal, options, { method: 'POST', path: '/users', body: { userName: name } });
      printDone(terminal, options.json, made, `User ${name} is made.`);
    });
}

export function deleteUserCommand(terminal: Terminal) {
  return platformCommand('delete-user', {
    summary: 'Remove a user with all access keys.',
    examples: [{ does: 'remove ada', line: 'agentcore iam delete-user ada' }],
  })
    .argument('<name>', 'name of the user')
    .action(async (name, options) => {
      await iamRequest(terminal, options, { method: 'DELETE', path: user(name) });
      printDone(terminal, options.json, { userName: name, deleted: true }, `User ${name} is removed.`);
    });
}

export function keysCommand(terminal: Terminal) {
  return platformCommand('keys', {
    summary: 'List access keys, without their secrets.',
    examples: [{ does: 'the keys of ada', line: 'agentcore iam keys ada' }],
  })
    .argument('[user]', 'the user (default: the account itself)')
    .action(async (name, options) => {
      const value = await iamRequest(terminal, options, { path: keysOf(name) });
      const fields = ['accessKeyId', 'active', 'createdAt'];
      printList(terminal, options.json, value, { member: 'accessKeys', fields, none: 'There are no keys.' });
    });
}

export function createKeyCommand(terminal: Terminal) {
  return platformCommand('create-key', {
    summary: 'Make an access key; its secret is shown this once.',
    details: 'Prints a section for a shared credentials file.',
    examples: [
      {
        does: 'a key for ada, into the file that the AWS SDKs read',
        line: 'agentcore iam create-key ada >> ~/.aws/credentials',
      },
    ],
  })
    .argument('[user]', 'the user (default: the account itself)')
    .action(async (name, options) => {
      const made = await iamRequest(terminal, options, { method: 'POST', path: keysOf(name) });
      if (options.json) return printJson(terminal, made);
      print(terminal, `[${name ?? 'agentplatform-root'}]`);
      print(terminal, `aws_access_key_id = ${fieldOf(made, 'accessKeyId')}`);
      print(terminal, `aws_secret_access_key = ${fieldOf(made, 'secretAccessKey')}`);
      note(terminal, 'The secret is not shown again.');
    });
}

export function setKeyCommand(terminal: Terminal) {
  return platformCommand('set-key', {
    summary: 'Switch an access key off or on.',
    examples: [
      {
        does: 'a key that may be known to others is off at once',
        line: 'agentcore iam set-key AKIAEXAMPLE --off --user ada',
      },
    ],
  })
    .argument('<key>', 'access key id')
    .option('--user <name>', 'the user (default: the account itself)')
    .option('--off', 'switch it off (default: on)')
    .action(async (key, options) => {
      const active = !options.off;
      const path = `${keysOf(options.user)}/${segment(key)}`;
      const changed = await iamRequest(terminal, options, { method: 'PATCH', path, body: { active } });
      printDone(terminal, options.json, changed, `Access key ${key} is ${active ? 'on' : 'off'}.`);
    });
}

export function deleteKeyCommand(terminal: Terminal) {
  return platformCommand('delete-key', {
    summary: 'Remove an access key.',
    examples: [{ does: 'remove a key of ada', line: 'agentcore iam delete-key AKIAEXAMPLE --user ada' }],
  })
    .argument('<key>', 'access key id')
    .option('--user <name>', 'the user (default: the account itself)')
    .action(async (key, options) => {
      const path = `${keysOf(options.user)}/${segment(key)}`;
      await iamRequest(terminal, options, { method: 'DELETE', path });
      printDone(terminal, options.json, { accessKeyId: key, deleted: true }, `Access key ${key} is removed.`);
    });
}
