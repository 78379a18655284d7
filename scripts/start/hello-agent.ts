import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { withProgress } from '../bootstrap/progress.mjs';
import type { PlatformProcess } from './platform-process.ts';
import type { ReadyLine } from './ready-line.ts';

interface Setting {
  root: string;
  platform: PlatformProcess;
  signal: AbortSignal;
}

/**
 * Deploys `examples/hello-agent` with the CLI and talks to it: twice in one session, whose memory counts 1 and 2, once
 * in another, which begins at 1. Rejects with what went wrong, also when an answer shows that sessions share memory.
 */
export async function showHelloAgent({ root, platform, signal }: Setting): Promise<void> {
  const { ready } = platform;
  const cli = commandLine(root, ready, signal);
  say(`The platform is ready on ${ready.endpoint} · isolation: ${ready.isolation}`);
  await withProgress('Building and deploying examples/hello-agent', () => cli(['deploy', '--json']));

  const [one, other] = [`hello-${randomUUID()}`, `hello-${randomUUID()}`];
  for (const [session, count, comment] of [
    [one, 1, 'a new session, a new sandbox'],
    [one, 2, 'the same session: the same sandbox, its memory intact'],
    [other, 1, 'another session: another sandbox, where the count starts again'],
  ] as const) {
    const payload = JSON.stringify({ prompt: 'Hello!' });
    say(`\n$ agentcore invoke '${payload}' --session ${session}    # ${comment}`);
    const answer = await cli(['invoke', payload, '--session', session], (text) => process.stdout.write(text));
    if (!answer.endsWith('\n')) process.stdout.write('\n');
    if (!new RegExp(`\\b${count}\\b`).test(answer)) {
      throw new Error(
        `The agent should have counted ${count} in this session, and did not. The platform's log: ${platform.logFile}`,
      );
    }
  }
  say(nextSteps(root, ready));
}

/** Runs the CLI in the example's folder; resolves with its stdout, which `onText` sees as it comes. */
function commandLine(root: string, ready: ReadyLine, signal: AbortSignal) {
  const env = { ...process.env, ...variables(ready) };
  return (args: string[], onText?: (text: string) => void): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [join(root, 'packages/cli/bin/agentcore.mjs'), ...args], {
        cwd: join(root, 'examples/hello-agent'),
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        signal,
        timeout: 10 * 60_000,
      });
      let stdout = '';
      let stderr = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
        onText?.(text);
      });
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr = (stderr + text).slice(-8192);
      });
      child.on('error', reject);
      child.on('close', (status) => {
        if (status === 0) resolve(stdout);
        else reject(new Error(`agentcore ${args[0]} failed:\n${(stderr || stdout).trim()}`));
      });
    });
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function nextSteps(root: string, ready: ReadyLine): string {
  // The CLI finds the platform whose data is here by itself, another through the variables of the SDKs.
  const isHere = dirname(ready.credentialsFile) === join(root, '.agentplatform');
  const point = isHere
    ? '  eval "$(npx agentcore env)"      points every AWS SDK and boto3 of that shell at the platform'
    : Object.entries(variables(ready))
        .map(([name, value]) => `  export ${name}=${value}`)
        .join('\n');
  return `
What to do next, in another terminal of this folder:
${point}
  npx agentcore create my-agent    makes your own agent: TypeScript, Python, or any Containerfile
  npx agentcore wait               waits for what is still made in the background: pandas in sessions, memory by meaning
  npx agentcore doctor             says what isolation this machine offers, and what is missing
README.md has the rest.`;
}

/** What points the CLI and every AWS SDK at the platform. */
const variables = (ready: ReadyLine): Record<string, string> => ({
  AWS_SHARED_CREDENTIALS_FILE: ready.credentialsFile,
  AWS_PROFILE: ready.profile,
  AWS_REGION: ready.region,
  AWS_ENDPOINT_URL: ready.endpoint,
});
