import { type OperationName, operations } from '@agentplatform/contract';

/**
 * What takes no room though it is no mere look: it makes things fewer or ends them, answers from what is there, or leads to a session, which
 * asks for its own room when it starts. Whatever is not named here needs room, so that an operation of tomorrow does.
 */
const NEEDS_NONE =
  /^(Delete|BatchDelete|Stop|Untag|Invoke|Converse|Retrieve|Search|List|Get|Complete|Evaluate)(?![a-z])/;

const names: ReadonlySet<OperationName> = new Set(
  Object.values(operations).flatMap(({ name, readonly }) => (readonly || NEEDS_NONE.test(name) ? [] : [name])),
);

/** Whether an operation takes room on the disk. */
export function writes(operation: OperationName): boolean {
  return names.has(operation);
}

/** What changes nothing though it is no mere look: it uses what is there. Whatever is not named here counts as a change. */
const USES = /^(Invoke|Converse|Retrieve|Search|List|Get|Evaluate)(?![a-z])/;

const changing: ReadonlySet<OperationName> = new Set(
  Object.values(operations).flatMap(({ name, readonly }) => (readonly || USES.test(name) ? [] : [name])),
);

/** Whether an operation changes something, deletion included: it is not done where nothing can be recorded. */
export function changes(operation: OperationName): boolean {
  return changing.has(operation);
}
