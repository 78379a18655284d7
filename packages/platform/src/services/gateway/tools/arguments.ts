import type { DocumentValue } from '@agentplatform/contract';

/** One way in which arguments differ from a tool's schema. */
export interface ArgumentProblem {
  /** JSON pointer into the arguments; empty for the arguments themselves. */
  path: string;
  /** Continues a sentence that begins with the path. */
  message: string;
}

/** Tells what is wrong with arguments; nothing where they conform. */
export type CheckArguments = (value: DocumentValue) => ArgumentProblem[];
