import type { control } from '@agentplatform/contract';

/** The interpreter that every account has without making one. */
export const BUILT_IN = 'aws.codeinterpreter.v1';

/** In the table `resources`. */
export const INTERPRETER_KIND = 'code-interpreter';

/** A code interpreter: what its sessions may reach, and in whose name. */
export interface Interpreter {
  arn: string;
  id: string;
  /** Account that owns it; the built-in one belongs to whoever asks. */
  accountId: string;
  name: string;
  description: string | undefined;
  executionRoleArn: string | undefined;
  network: control.CodeInterpreterNetworkConfiguration;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** ARN of an interpreter by its id, or of all of an account's own by `*`. */
export function interpreterArn(id: string, region: string, accountId: string): string {
  return id === BUILT_IN
    ? `arn:aws:bedrock-agentcore:${region}:aws:code-interpreter/${id}`
    : `arn:aws:bedrock-agentcore:${region}:${accountId}:code-interpreter-custom/${id}`;
}

/** The id in what a caller names, which may be an id or an ARN. */
export function interpreterIdOf(named: string): string {
  return named.startsWith('arn:') ? named.slice(named.lastIndexOf('/') + 1) : named;
}
