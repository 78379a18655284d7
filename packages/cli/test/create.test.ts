import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { hasTmux, Tmux } from '../../../tests/support/tmux.ts';
import { agentcore, commandLine, start, workFolder } from './agentcore.ts';
import { FakePlatform } from './fake-platform.ts';

/** A server that answers with the value of an expression. */
const SERVING = (expression: string): string => `import http.server, os, named
class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write((${expression}).encode())
http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Agent).serve_forever()
`;

let work: Awaited<ReturnType<typeof workFolder>>;
beforeEach(async () => {
  work = await workFolder();
  return () => work.remove();
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('create, dev and invoke', () => {
  it.each([
    ['typescript', 'index.ts'],
    ['python', 'main.py'],
  ])(
    'work together for %s: run, answer, restart on a change, survive a mistake, end at Ctrl-C',
    async (language, main) => {
      const made = await agentcore(['create', 'my-agent', '--language', language, '--json'], { cwd: work.folder });
      expect(made.code, made.stderr).toBe(0);
      const folder = join(work.folder, 'my-agent');
      expect(JSON.parse(made.stdout)).toEqual({ name: 'my_agent', language, folder });
      const port = await freePort();
      const dev = start(['dev', '--port', String(port), '--json'], { cwd: folder });
      try {
        const [line] = await Promise.race([
          once(dev.stdout ?? dev, 'data'),
          dev.ended.then((ended) => Promise.reject(new Error(ended.stderr))),
        ]);
        expect(JSON.parse(line)).toEqual({ url: `http://127.0.0.1:${port}`, port });
        const invoke = () => agentcore(['invoke', '{"prompt":"hi"}', '--local', String(port)], { cwd: folder });
        expect(await invoke()).toEqual({
          code: 0,
          stderr: '',
          stdout: 'Hello! You said "hi". This is call 1 of this session.\n',
        });
        expect((await invoke()).stdout).toContain('call 2');

        const heard = (text: string): Promise<void> =>
          new Promise((resolve) => dev.stderr?.on('data', (chunk: string) => chunk.includes(text) && resolve()));
        const source = await readFile(join(folder, main), 'utf8');
        const broken = heard('aiting for a change');
        await writeFile(join(folder, main), `${source}\n)`);
        await broken;
        const restarted = heard('Restarted');
        await writeFile(join(folder, main), source.replace('Hello!', 'Howdy!'));
        await restarted;
        expect((await invoke()).stdout).toBe('Howdy! You said "hi". This is call 1 of this session.\n');
      } finally {
        dev.kill('SIGINT');
      }
      expect((await dev.ended).code).toBe(0);
      await expect(fetch(`http://127.0.0.1:${port}/ping`)).rejects.toThrow();
    },
  );

  it.skipIf(!hasTmux)(
    'asks a person for name and kind, says what is wrong with an answer, and leaves nothing at Ctrl-C',
    async () => {
      const terminal = Tmux.open(`cd ${work.folder} && env -u CI HOME=${work.folder} ${commandLine} create`);
      try {
        await terminal.shows('What shall the agent be called?');
        await terminal.shows('my-agent');
        terminal.type('7 seas', 'Enter');
        await terminal.shows('A name begins with a letter');
        terminal.type('C-u', 'sailor', 'Enter');
        await terminal.shows('What shall it begin with?');
        terminal.type('Down', 'Enter');
        await terminal.shows('Made sailor/. Next:');
        await terminal.shows('agentcore dev');
      } finally {
        terminal.close();
      }
      const { language } = JSON.parse(await readFile(join(work.folder, 'sailor/agentcore.json'), 'utf8'));
      expect(language).toBe('python');
      const left = Tmux.open(
        `cd ${work.folder} && env -u CI HOME=${work.folder} ${commandLine} create; echo status $?`,
      );
      try {
        await left.shows('my-agent');
        left.type('ts-agent');
        await left.shows('ts-agent');
        expect(left.screen()).not.toContain('my-agent');
        left.type('C-u', 'Enter');
        await left.shows('What shall it begin with?');
        left.type('C-c');
        await left.shows('status 130');
        await left.shows('Nothing was done.');
      } finally {
        left.close();
      }
      expect(await readdir(work.folder)).not.toContain('my-agent');
    },
  );

  it('refuses a folder that is not empty, and a port that is taken', async () => {
    expect((await agentcore(['create', 'a', '-l', 'python'], { cwd: work.folder })).code).toBe(0);
    const again = await agentcore(['create', 'a', '-l', 'python'], { cwd: work.folder });
    expect([again.code, again.stdout]).toEqual([2, '']);
    expect(again.stderr).toContain('is not empty');
    const server = createServer().listen(0, '0.0.0.0');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const taken = await agentcore(['dev', '--port', String(port)], { cwd: join(work.folder, 'a') });
    server.close();
    expect(taken.code).toBe(1);
    expect(taken.stderr).toContain(`agentcore dev --port ${port + 1}`);
  });

  it('runs an agent beside the packages that are not bundled, without copying them at each restart', async () => {
    const kept = join(work.folder, 'node_modules/kept');
    await mkdir(kept, { recursive: true });
    await writeFile(join(kept, 'package.json'), '{"name":"kept","type":"module","main":"i.js"}');
    await writeFile(join(kept, 'i.js'), "import { createServer } from 'node:http'; export default createServer;");
    await writeFile(
      join(work.folder, 'index.ts'),
      "import serve from 'kept'; serve((_, answer) => answer.end('{}')).listen(process.env.PORT);",
    );
    const file = { name: 'a', language: 'typescript', entrypoint: 'index.ts', bundle: { external: ['kept'] } };
    await writeFile(join(work.folder, 'agentcore.json'), JSON.stringify(file));
    const dev = start(['dev', '--port', String(await freePort()), '--json'], { cwd: work.folder });
    try {
      const ended = dev.ended.then(({ stderr }) => Promise.reject(new Error(stderr)));
      await Promise.race([once(dev.stdout ?? dev, 'data'), ended]);
      expect(await readdir(join(work.folder, '.agentcore/dev'))).not.toContain('node_modules');
    } finally {
      dev.kill('SIGINT');
    }
    expect((await dev.ended).code).toBe(0);
  });

  it.skipIf(!hasTmux)('ends a Python agent at Ctrl-C in a terminal without a trace of it', async () => {
    await writeFile(join(work.folder, 'agentcore.json'), '{"name":"a","language":"python","entrypoint":"main.py"}');
    await writeFile(join(work.folder, 'named.py'), 'word = "up"');
    const heard =
      'import signal\nfor one in (2, 15): signal.signal(one, lambda n, _: (print("heard", n, flush=True), n == 15 and os._exit(0)))\n';
    await writeFile(join(work.folder, 'main.py'), SERVING('named.word').replace('class', `${heard}class`));
    const dev = `${commandLine} dev --port ${await freePort()}`;
    const terminal = Tmux.open(`cd ${work.folder} && HOME=${work.folder} ${dev}; echo status $?`);
    try {
      await terminal.shows('Ctrl-C ends it.');
      terminal.type('C-c');
      await terminal.shows('status 0');
      // Its own end alone; a keyboard's interrupt would be a traceback in most.
      expect(terminal.screen()).toContain('heard 15');
      expect(terminal.screen()).not.toContain('heard 2');
    } finally {
      terminal.close();
    }
  });

  it('runs a Python agent beside what requirements.txt names, which deploy then ships as it is', async () => {
    const bin = join(work.folder, '.venv/bin');
    await mkdir(bin, { recursive: true });
    // A Python whose pip installs one module of its own making, and notes that it was asked.
    const pip = `if [ "$2" = pip ]; then echo asked >> ${bin}/asked; while [ "$1" != --target ]; do shift; done; echo 'word = "shipped"' > "$2/named.py"; exit; fi`;
    await writeFile(join(bin, 'python'), `#!/bin/sh\n${pip}\nexec python3 "$@"\n`, { mode: 0o755 });
    await writeFile(join(work.folder, 'requirements.txt'), 'named==1\n');
    const agent = (answer: string): Promise<void> => writeFile(join(work.folder, 'main.py'), SERVING(answer));
    await agent('named.word');
    const file = { name: 'a', language: 'python', entrypoint: 'main.py' };
    await writeFile(join(work.folder, 'agentcore.json'), JSON.stringify(file));
    const port = await freePort();
    const dev = start(['dev', '--port', String(port), '--json'], { cwd: work.folder });
    try {
      const ended = dev.ended.then(({ stderr }) => Promise.reject(new Error(stderr)));
      await Promise.race([once(dev.stdout ?? dev, 'data'), ended]);
      expect(await (await fetch(`http://127.0.0.1:${port}/ping`)).text()).toBe('shipped');
    } finally {
      dev.kill('SIGINT');
    }
    await dev.ended;
    const platform = await new FakePlatform().start();
    try {
      await platform.connect(work.folder);
      for (const answer of ['named.word', 'named.word.upper()']) {
        await agent(answer);
        const deployed = await agentcore(['deploy'], { cwd: work.folder });
        expect(deployed.code, deployed.stderr).toBe(0);
      }
      const zips = [...platform.objects.values()];
      expect(zips).toHaveLength(2);
      for (const zip of zips) expect(zip.includes('named.py')).toBe(true);
    } finally {
      await platform.stop();
    }
    expect(await readFile(join(bin, 'asked'), 'utf8')).toBe('asked\n');
  });

  it('says that nothing runs when invoked locally without dev', async () => {
    const { code, stderr } = await agentcore(['invoke', '{}', '--local', String(await freePort())], {
      cwd: work.folder,
    });
    expect(code).toBe(3);
    expect(stderr).toContain('agentcore dev');
  });

  it('makes an agent of any image', async () => {
    expect((await agentcore(['create', 'img', '-l', 'containerfile'], { cwd: work.folder })).stdout).toContain(
      'agentcore deploy',
    );
    const { code, stderr } = await agentcore(['dev'], { cwd: join(work.folder, 'img') });
    expect(code).toBe(2);
    expect(stderr).toContain('agentcore deploy');
  });
});
