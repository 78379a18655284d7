import { Option } from '@commander-js/extra-typings';
import { platformCommand } from '../command.ts';
import { segment } from '../platform/admin.ts';
import { printJson, type Terminal } from '../terminal/terminal.ts';
import { fieldOf, iamRequest, ownerCommand, ownerPath, printDone, printList, readDocument } from './iam-request.ts';

const policy = (owner: string, name: string): string => `${owner}/policies/${segment(name)}`;

export function policiesCommand(terminal: Terminal) {
  return ownerCommand('policies', {
    summary: 'List the policies of a user or role.',
    examples: [{ does: 'what ada may do, by name', line: 'agentcore iam policies --user ada' }],
  }).action(async (options) => {
    const value = await iamRequest(terminal, options, { path: `${ownerPath(options)}/policies` });
    printList(terminal, options.json, value, {
      member: 'policies',
      fields: ['policy'],
      none: 'There are no policies.',
    });
  });
}

export function showPolicyCommand(terminal: Terminal) {
  return ownerCommand('show-policy', {
    summary: 'Print a policy as JSON.',
    examples: [{ does: 'what the policy says', line: 'agentcore iam show-policy invoke --user ada' }],
  })
    .argument('<name>', 'name of the policy')
    .action(async (name, options) => {
      const value = await iamRequest(terminal, options, { path: policy(ownerPath(options), name) });
      printJson(terminal, options.json ? value : fieldOf(value, 'policyDocument'));
    });
}

export function putPolicyCommand(terminal: Terminal) {
  return ownerCommand('put-policy', {
    summary: 'Give a user or role a policy, or change it.',
    details:
      'The policy is a JSON document with Statements of Effect, Action, Resource and Condition. A Deny beats every Allow. Without an Allow everything is denied.',
    examples: [
      { does: 'a policy from a file', line: 'agentcore iam put-policy invoke invoke.json --user ada' },
      {
        does: 'a policy as it is typed',
        line: `echo '{"Statement":[{"Effect":"Allow","Action":"bedrock-agentcore:InvokeAgentRuntime","Resource":"*"}]}' | agentcore iam put-policy invoke - --user ada`,
      },
    ],
  })
    .argument('<name>', 'name of the policy')
    .argument('<file>', 'policy as JSON; "-" reads standard input')
    .action(async (name, file, options) => {
      const path = policy(ownerPath(options), name);
      const body = { policyDocument: await readDocument(terminal, file) };
      await iamRequest(terminal, options, { method: 'PUT', path, body });
      printDone(terminal, options.json, { policyName: name }, `Policy ${name} is in force.`);
    });
}

export function deletePolicyCommand(terminal: Terminal) {
  return ownerCommand('delete-policy', {
    summary: 'Remove a policy from a user or role.',
    examples: [{ does: 'ada may no longer invoke', line: 'agentcore iam delete-policy invoke --user ada' }],
  })
    .argument('<name>', 'name of the policy')
    .action(async (name, options) => {
      await iamRequest(terminal, options, { method: 'DELETE', path: policy(ownerPath(options), name) });
      printDone(terminal, options.json, { policyName: name, deleted: true }, `Policy ${name} is removed.`);
    });
}

const kinds = ['identity', 'resource', 'trust'] as const;

export function validatePolicyCommand(terminal: Terminal) {
  return platformCommand('validate-policy', {
    summary: 'Check a policy without giving it to anyone.',
    examples: [{ does: 'check a file', line: 'agentcore iam validate-policy invoke.json' }],
  })
    .argument('<file>', 'policy as JSON; "-" reads standard input')
    .addOption(new Option('--kind <kind>', 'what it would be').choices(kinds).default('identity' as const))
    .action(async (file, options) => {
      const body = { kind: options.kind, policyDocument: await readDocument(terminal, file) };
      const result = await iamRequest(terminal, options, { method: 'POST', path: '/validate', body });
      printDone(terminal, options.json, result, `The policy is valid (statements: ${fieldOf(result, 'statements')}).`);
    });
}
