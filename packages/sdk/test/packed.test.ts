import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installPacked, linkPackages } from './install-packed.ts';

const home = mkdtempSync(join(tmpdir(), 'sdk-packed-'));

beforeAll(async () => {
  await installPacked(home);
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

/** What the names of a module are, seen by a program that installed the package. */
function namesOf(module: string): string[] {
  const script = `console.log(JSON.stringify(Object.keys(await import(${JSON.stringify(module)}))))`;
  const out = execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: home, encoding: 'utf8' });
  return JSON.parse(out);
}

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

  it('has every subpath, with types that a strict program compiles against', { timeout: 120_000 }, () => {
    const clients = ['@aws-sdk/client-bedrock-agentcore', '@aws-sdk/client-bedrock-agentcore-control'];
    const peers = [...clients, '@langchain/core', '@langchain/langgraph-checkpoint', 'ai'];
    linkPackages(home, [...peers, 'typescript', '@types/node']);
    const { exports } = JSON.parse(readFileSync(join(home, 'node_modules/agentplatform/package.json'), 'utf8'));
    expect(Object.keys(exports)).toEqual([
      '.',
      './ai-sdk',
      './browser',
      './code-interpreter',
      './identity',
      './langchain',
      './langgraph',
      './memory',
    ]);
    expect(namesOf('agentplatform')).toContain('AgentPlatformApp');
    expect(namesOf('agentplatform/identity')).toEqual(['ConsentError', 'requiresAccessToken', 'requiresApiKey']);
    expect(namesOf('agentplatform/memory')).toContain('MemoryClient');
    expect(namesOf('agentplatform/langgraph')).toEqual(['MemorySaver', 'MemoryStore']);
    expect(namesOf('agentplatform/code-interpreter')).toContain('CodeInterpreter');
    for (const framework of ['langchain', 'ai-sdk'])
      expect(namesOf(`agentplatform/${framework}`)).toEqual(['codeInterpreterTools']);
    writeFileSync(
      join(home, 'user.ts'),
      `import { CodeInterpreter } from 'agentplatform/code-interpreter';
       import { codeInterpreterTools as forLangChain } from 'agentplatform/langchain';
       import { codeInterpreterTools as forAiSdk } from 'agentplatform/ai-sdk';
       import { requiresAccessToken, requiresApiKey } from 'agentplatform/identity';
       import { MemorySaver, MemoryStore } from 'agentplatform/langgraph';
       import { MemoryClient } from 'agentplatform/memory';
       import { type BaseCheckpointSaver, type BaseStore } from '@langchain/langgraph-checkpoint';
       import type { ToolSet } from 'ai';
       await using interpreter = new CodeInterpreter('us-east-1');
       export const named: string[] = forLangChain(interpreter).map((tool) => tool.name);
       export const tools: ToolSet = forAiSdk(interpreter);
       // @ts-expect-error: a region is no number
       new CodeInterpreter(1);
       const scopes = ['read'];
       export const search: (query: string) => Promise<number> = requiresApiKey({ providerName: 'search' })(
         (query: string, apiKey: string) => query.length + apiKey.length,
       );
       export const orders: () => Promise<string> = requiresAccessToken({ providerName: 'o', scopes, authFlow: 'M2M' })((token: string) => token);
       // @ts-expect-error: no such flow
       requiresAccessToken({ providerName: 'o', scopes, authFlow: 'OTHER' });
       const client = new MemoryClient();
       export const saver: BaseCheckpointSaver = new MemorySaver({ memoryId: 'm', client });
       export const store: BaseStore = new MemoryStore({ memoryId: 'm', client });`,
    );
    const flags = ['--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022'];
    const lib = ['--lib', 'es2023,esnext.disposable,dom', '--types', 'node'];
    execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', ...flags, ...lib, 'user.ts'], { cwd: home });
  });

  it('says which package a subpath needs when it is not there', () => {
    const bare = mkdtempSync(join(tmpdir(), 'sdk-bare-'));
    cpSync(join(home, 'node_modules/agentplatform'), join(bare, 'node_modules/agentplatform'), { recursive: true });
    const script = "import('agentplatform/langchain').catch((error) => console.log(error.message))";
    const said = execFileSync(process.execPath, ['-e', script], { cwd: bare, encoding: 'utf8' });
    rmSync(bare, { recursive: true, force: true });
    expect(said).toContain("Cannot find package '@langchain/core'");
  });
});
