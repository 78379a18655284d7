import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const home = mkdtempSync(join(tmpdir(), 'sdk-packed-'));
// npm by its own script, so that the test needs no PATH.
const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };

beforeAll(() => {
  execFileSync(process.execPath, [join(root, 'scripts/build.mjs')], { env });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', home, join(root, 'dist')], { env });
  writeFileSync(join(home, 'package.json'), '{"name":"user","type":"module"}');
  execFileSync('npm', ['install', '--silent', '--offline', '--no-audit', './agentplatform-0.1.0.tgz'], {
    cwd: home,
    env,
  });
  writeFileSync(
    join(home, 'agent.js'),
    `import { AgentPlatformApp } from 'agentplatform';
     const app = new AgentPlatformApp(async function* () {
       yield 'begun';
       await new Promise((resolve) => process.once('SIGTERM', resolve));
       yield 'finished';
     });
     setInterval(() => {}, 1000);
     const { port } = await app.run({ port: 0, host: '127.0.0.1' });
     console.log(port);`,
  );
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe('the packed artefact', () => {
  it('carries JavaScript and types, no source and no dependency', () => {
    const manifest = JSON.parse(readFileSync(join(home, 'node_modules/agentplatform/package.json'), 'utf8'));
    expect(manifest.dependencies).toBeUndefined();
    expect(manifest.private).toBeUndefined();
    expect(readFileSync(join(home, 'node_modules/agentplatform/index.d.ts'), 'utf8')).toContain('AgentPlatformApp');
    expect(readFileSync(join(home, 'node_modules/agentplatform/index.js'), 'utf8')).not.toContain('.ts');
  });

  it('lets a call in flight finish at SIGTERM, refuses new ones, and exits with 0 though a timer is left', async () => {
    const agent = spawn(process.execPath, ['agent.js'], { cwd: home, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(agent, 'exit');
    try {
      const [port] = await once(createInterface(agent.stdout), 'line');
      const url = `http://127.0.0.1:${port}`;
      const response = await fetch(`${url}/invocations`, { method: 'POST', body: '{}' });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      expect((await reader?.read())?.value).toBe('data: "begun"\n\n');
      agent.kill('SIGTERM');
      expect((await reader?.read())?.value).toBe('data: "finished"\n\n');
      expect((await reader?.read())?.done).toBe(true);
      await expect(fetch(`${url}/ping`)).rejects.toThrow();
      expect(await exited).toEqual([0, null]);
    } finally {
      agent.kill('SIGKILL');
    }
  });
});
