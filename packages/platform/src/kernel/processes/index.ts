export { startFailureReason } from './command-failure.ts';
export { endProcess, identify, isAlive, type ProcessIdentity, signalProcess } from './process-table.ts';
export { exitStatus, HELPER_ENV, type RunCommand, runCommand } from './run-command.ts';
