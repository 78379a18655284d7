import { commandGroup } from '../command.ts';
import type { Terminal } from '../terminal/terminal.ts';
import {
  deletePolicyCommand,
  policiesCommand,
  putPolicyCommand,
  showPolicyCommand,
  validatePolicyCommand,
} from './iam-policies.ts';
import { createRoleCommand, deleteRoleCommand, rolesCommand, setTrustCommand } from './iam-roles.ts';
import {
  createKeyCommand,
  createUserCommand,
  deleteKeyCommand,
  deleteUserCommand,
  keysCommand,
  setKeyCommand,
  usersCommand,
  whoamiCommand,
} from './iam-users.ts';

/** Users, keys, roles and policies, through the platform's own routes. */
export function iamCommand(terminal: Terminal) {
  const members = [
    whoamiCommand(terminal),
    usersCommand(terminal),
    createUserCommand(terminal),
    deleteUserCommand(terminal),
    keysCommand(terminal),
    createKeyCommand(terminal),
    setKeyCommand(terminal),
    deleteKeyCommand(terminal),
    rolesCommand(terminal),
    createRoleCommand(terminal),
    setTrustCommand(terminal),
    deleteRoleCommand(terminal),
    policiesCommand(terminal),
    showPolicyCommand(terminal),
    putPolicyCommand(terminal),
    deletePolicyCommand(terminal),
    validatePolicyCommand(terminal),
  ];
  return commandGroup('iam', 'Manage who may do what: users, access keys, roles and policies.', members);
}
