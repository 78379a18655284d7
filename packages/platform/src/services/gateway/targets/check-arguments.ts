import { ToolError } from '../tool-error.ts';
import { type CheckArguments, compileArguments, type JsonObject, type Tool } from '../tools/index.ts';

/** The schema of a tool is read once. */
const checks = new WeakMap<Tool, CheckArguments>();

/** Throws ToolError that says what does not fit: nothing leaves the platform then. */
export function checkArguments(tool: Tool, args: JsonObject): void {
  let check = checks.get(tool);
  if (!check) {
    check = compileArguments(tool.inputSchema);
    checks.set(tool, check);
  }
  const problems = check(args);
  if (problems.length === 0) return;
  const text = problems.map(({ path, message }) => `${path === '' ? 'The arguments' : path} ${message}.`).join('\n');
  throw new ToolError(`The arguments do not fit the tool's schema, so nothing was sent:\n${text}`);
}
