import { platformCommand } from '../command.ts';
import { segment } from '../platform/admin.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { fieldOf, iamRequest, printDone, printList, readDocument } from './iam-request.ts';

const role = (name: string): string => `/roles/${segment(name)}`;

// What an execution role of an agent needs: the platform itself may take it on.
const platformTrust = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'bedrock-agentcore.amazonaws.com' }, Action: 'sts:AssumeRole' }],
};

export function rolesCommand(terminal: Terminal) {
  return platformCommand('roles', {
    summary: 'List the roles.',
    examples: [{ does: 'roles and the names of their policies', line: 'agentcore iam roles' }],
  }).action(async (options) => {
    const value = await iamRequest(terminal, options, { path: '/roles' });
    const fields = ['roleName', 'arn', 'policies'];
    printList(terminal, options.json, value, { member: 'roles', fields, none: 'There are no roles.' });
  });
}

export function createRoleCommand(terminal: Terminal) {
  return platformCommand('create-role', {
    summary: 'Make a role, such as the execution role of an agent.',
    examples: [
      { does: 'a role that agents run under', line: 'agentcore iam create-role shop' },
      { does: 'deploy an agent under it', line: 'agentcore deploy --role arn:aws:iam::123456789012:role/shop' },
    ],
  })
    .argument('<name>', 'name of the role')
    .option('--trust <file>', 'policy that says who may assume it (default: the platform, for agents)')
    .option('--description <text>', 'what it is for')
    .action(async (name, options) => {
      const trustPolicy = options.trust === undefined ? platformTrust : await readDocument(terminal, options.trust);
      const { description } = options;
      const body = { roleName: name, trustPolicy, ...(description === undefined ? {} : { description }) };
      const made = await iamRequest(terminal, options, { method: 'POST', path: '/roles', body });
      printDone(terminal, options.json, made, String(fieldOf(made, 'arn')));
    });
}

export function setTrustCommand(terminal: Terminal) {
  return platformCommand('set-trust', {
    summary: 'Change who may assume a role.',
    examples: [{ does: 'the trust policy from a file', line: 'agentcore iam set-trust shop trust.json' }],
  })
    .argument('<name>', 'name of the role')
    .argument('<file>', 'trust policy as JSON; "-" reads standard input')
    .action(async (name, file, options) => {
      const body = { trustPolicy: await readDocument(terminal, file) };
      const changed = await iamRequest(terminal, options, { method: 'PUT', path: `${role(name)}/trust-policy`, body });
      printDone(terminal, options.json, changed, `The trust policy of ${name} is changed.`);
    });
}

export function deleteRoleCommand(terminal: Terminal) {
  return platformCommand('delete-role', {
    summary: 'Remove a role. Credentials that were issued for it end at once.',
    examples: [{ does: 'remove a role', line: 'agentcore iam delete-role shop' }],
  })
    .argument('<name>', 'name of the role')
    .action(async (name, options) => {
      await iamRequest(terminal, options, { method: 'DELETE', path: role(name) });
      printDone(terminal, options.json, { roleName: name, deleted: true }, `Role ${name} is removed.`);
    });
}
