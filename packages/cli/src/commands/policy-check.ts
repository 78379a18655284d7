import { resolve } from 'node:path';
import type { Analysis, Diagnostic, PolicyEngine, TestResult, TraceExample } from '@agentplatform/policy-engine';
import { CliError } from '../cli-error.ts';
import { command } from '../command.ts';
import { readPolicyDocument } from '../policies/policy-document.ts';
import { harmless, note, print, printJson, type Terminal } from '../terminal/terminal.ts';

const SECONDS = 60;

/** `agentcore policy check`. */
export function checkCommand(terminal: Terminal) {
  return command('check', {
    summary: 'Check policies in files: parse, type-check, analyse, and run example calls. No platform is asked.',
    details:
      'The file (YAML or JSON) names the tools, the policies and the examples: see the guide of policies. Exit status 1: a policy is wrong, the analysis found something, or an example was decided otherwise.',
    examples: [
      { does: 'what the file names', line: 'agentcore policy check policies.yaml' },
      { does: 'the tools of a gateway, for such a file', line: 'agentcore gateway tools --json > tools.json' },
    ],
  })
    .argument('[file]', 'the file', 'policies.yaml')
    .option('--timeout <seconds>', 'how long the analysis may take', String(SECONDS))
    .action(async (file, options) => {
      const timeoutMs = milliseconds(options.timeout);
      const document = await readPolicyDocument(resolve(terminal.cwd, file));
      const report = await withEngine(async (engine) => {
        const { check } = await import('@agentplatform/policy-engine');
        if (!options.json) note(terminal, `Checking ${document.policies.length} policies …`);
        return await check(engine, document, { timeoutMs });
      });
      if (options.json) printJson(terminal, report);
      else {
        for (const problem of report.problems) showProblem(terminal, problem);
        if (report.analysis) await showAnalysis(terminal, report.analysis);
        for (const test of report.tests) showTest(terminal, test);
        for (const line of report.notes) note(terminal, line);
      }
      if (!report.ok) throw new CliError('failure', 'The policies are not as they should be: see above.');
    });
}

/** `agentcore policy diff`. */
export function diffCommand(terminal: Terminal) {
  return command('diff', {
    summary: 'Show what one version of policies allows that another does not, each with a call that shows it.',
    details:
      'Both files are as for agentcore policy check. The tools are those of the second. Exit status 1: a policy is wrong.',
    examples: [{ does: 'before and after', line: 'agentcore policy diff old/policies.yaml policies.yaml' }],
  })
    .argument('<before>', 'the file of the first version')
    .argument('<after>', 'the file of the second version')
    .option('--timeout <seconds>', 'how long the analysis may take', String(SECONDS))
    .action(async (before, after, options) => {
      const timeoutMs = milliseconds(options.timeout);
      const read = (file: string) => readPolicyDocument(resolve(terminal.cwd, file));
      const [first, second] = await Promise.all([read(before), read(after)]);
      const found = await withEngine(async (engine) => {
        const { diff } = await import('@agentplatform/policy-engine');
        if (!options.json) note(terminal, 'Comparing …');
        return await diff(engine, first, second, { timeoutMs });
      });
      if (options.json) printJson(terminal, found);
      else {
        for (const problem of found.problems) showProblem(terminal, problem);
        if (found.analysis) await showAnalysis(terminal, found.analysis, 'Both allow the same calls.');
      }
      if (!found.analysis) throw new CliError('failure', 'A policy does not fit the tools of the second version.');
    });
}

function milliseconds(given: string): number {
  const seconds = Number(given);
  if (Number.isFinite(seconds) && seconds > 0 && seconds <= 3_600) return seconds * 1_000;
  throw new CliError('usage', 'The timeout is a number of seconds, more than 0 and at most 3600.');
}

/** With an engine of this command's own; loaded when it is needed, as it has 10 MB. */
async function withEngine<Result>(work: (engine: PolicyEngine) => Promise<Result>): Promise<Result> {
  const { PolicyEngine } = await import('@agentplatform/policy-engine');
  const engine = new PolicyEngine({ callMs: 60_000 });
  try {
    return await work(engine);
  } finally {
    await engine.close();
  }
}

function showProblem(terminal: Terminal, { policyId, severity, line, column, ...problem }: Diagnostic): void {
  const at = line === null ? '' : `:${line}${column === null ? '' : `:${column}`}`;
  print(terminal, harmless(`${severity}  ${policyId ?? 'the policies'}${at}  ${problem.message}`));
  for (const text of (problem.excerpt ?? '').split('\n').filter(Boolean)) print(terminal, harmless(`    ${text}`));
  if (problem.suggestion) print(terminal, harmless(`    ${problem.suggestion}`));
}

async function showAnalysis(terminal: Terminal, found: Analysis, nothing?: string): Promise<void> {
  const { findings, complete, traces } = found;
  const { written } = await import('@agentplatform/policy-engine');
  for (const { type, message, counterexample } of findings) {
    print(terminal, harmless(`${type}  ${message}`));
    if (counterexample) print(terminal, harmless(`    ${written(counterexample)}`));
  }
  for (const { policyId, matched } of traces)
    if (matched) print(terminal, harmless(`    ${policyId} is about this, such as: ${storyOf(matched)}`));
  if (findings.length === 0 && complete) print(terminal, nothing ?? 'The analysis found nothing.');
}

function storyOf({ principal, action, input, history }: TraceExample): string {
  const before = history.map(
    (one) => `${one.secondsAgo} s before: ${one.kind} of ${one.action} ${JSON.stringify(one.input)}`,
  );
  return [...before, `${principal} calls ${action} with ${JSON.stringify(input)}`].join('; ');
}

function showTest(terminal: Terminal, { name, ok, expected, found, undecidable }: TestResult): void {
  print(terminal, harmless(`${ok ? 'ok  ' : 'FAIL'}  ${name}`));
  if (ok) return;
  if (undecidable !== undefined) {
    print(terminal, harmless(`    could not be decided: ${undecidable}`));
    return;
  }
  const by = [...found.determining, ...found.errors].join(', ');
  print(terminal, harmless(`    expected ${expected.expect}, found ${found.decision}${by === '' ? '' : `: ${by}`}`));
}
