/** Whether a statement is Dogwood: it has what Cedar does not. */
export function isDogwood(statement: string): boolean {
  return /\bwhen\s+(?:temporal|guardrails)\b|\bsuppressOutput\b/.test(statement);
}
