import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { agentcore, workFolder } from './agentcore.ts';
import { FakePlatform } from './fake-platform.ts';

let work: Awaited<ReturnType<typeof workFolder>>;
let platform: FakePlatform;
beforeEach(async () => {
  work = await workFolder();
  platform = await new FakePlatform().start();
  await platform.connect(work.folder);
  await writeFile(join(work.folder, 'agentcore.json'), '{"name":"My_Img","language":"containerfile"}');
  await writeFile(join(work.folder, 'Containerfile'), 'FROM scratch\n');
  return async () => {
    await platform.stop();
    await work.remove();
  };
});

const digest = `sha256:${'ab'.repeat(32)}`;

/** A builder that notes how it is called, and with which registry credentials; `behaviour` is shell. */
async function builder(name: string, behaviour: string): Promise<{ PATH: string }> {
  const bin = join(work.folder, 'bin');
  await mkdir(bin, { recursive: true });
  const script = `#!/bin/sh\necho "$@" >> ${work.folder}/calls\n${behaviour}\n`;
  await writeFile(join(bin, name), script);
  await chmod(join(bin, name), 0o755);
  return { PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin` };
}

describe('deploying a Containerfile', () => {
  it('builds and pushes with Docker when its engine runs, and deploys by digest', async () => {
    const env = await builder(
      'docker',
      `case "$1" in --config) cp "$2/config.json" ${work.folder}/auth; stat -c %a "$2/config.json" > ${work.folder}/mode; echo "latest: digest: ${digest} size: 1";; esac`,
    );
    const { code, stderr } = await agentcore(['deploy'], { cwd: work.folder, env });
    expect(code, stderr).toBe(0);
    expect(platform.runtimes[0]?.definition).toMatchObject({
      agentRuntimeArtifact: { containerConfiguration: { containerUri: `platform/my_img@${digest}` } },
    });
    const calls = await readFile(join(work.folder, 'calls'), 'utf8');
    const host = new URL(platform.endpoint).host;
    expect(calls).toMatch(new RegExp(`^info\\nbuild --file Containerfile --tag ${host}/my_img:latest \\.\\n`));
    // Credentials are in a file that only the user reads, never in the process list.
    expect(calls).not.toContain('secret');
    expect(await readFile(join(work.folder, 'mode'), 'utf8')).toBe('600\n');
    const auth = JSON.parse(await readFile(join(work.folder, 'auth'), 'utf8'));
    expect(Buffer.from(auth.auths[host].auth, 'base64').toString()).toBe('AKIDEXAMPLE:secret');
  });

  it('takes buildah when Docker has no engine', async () => {
    await builder('docker', 'exit 1');
    const env = await builder(
      'buildah',
      `while [ $# -gt 0 ]; do [ "$1" = --digestfile ] && printf ${digest} > "$2"; shift; done`,
    );
    const { code, stderr } = await agentcore(['deploy'], { cwd: work.folder, env });
    expect(code, stderr).toBe(0);
    expect(await readFile(join(work.folder, 'calls'), 'utf8')).toMatch(
      /\npush --tls-verify=false --authfile \S+ --digestfile /,
    );
  });

  it('says in one sentence that Docker’s engine does not answer, and what to do, when Docker is asked for', async () => {
    const env = await builder('docker', 'echo "ERROR: Cannot connect to the daemon at unix:///nowhere." >&2; exit 1');
    const { code, stderr } = await agentcore(['deploy', '--builder', 'docker'], { cwd: work.folder, env });
    expect(code).toBe(1);
    // Before it may stand that the step takes long; after it nothing of the builder's own.
    expect(stderr.slice(stderr.indexOf('error:'))).toBe(
      'error: The image cannot be built with docker: Docker’s engine does not answer.\n' +
        'Start Docker (systemctl start docker), or add yourself to the group docker if it runs, ' +
        'or build with another: agentcore deploy --builder buildah or none ("none" builds everything except RUN).\n',
    );
    expect(stderr).not.toContain('nowhere');
    expect(await readFile(join(work.folder, 'calls'), 'utf8')).toBe('info\n');
  });

  it.each(['docker', 'buildah'])('says that there is no %s', async (name) => {
    const env = { PATH: '/nonexistent' };
    const { code, stderr } = await agentcore(['deploy', '--builder', name], { cwd: work.folder, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`there is no ${name} on this machine\\.\nInstall .*--builder`));
  });

  it('shows the last lines of a build that fails', async () => {
    const env = await builder('docker', '[ "$1" = build ] && { echo "step 3: no such package" >&2; exit 9; }; exit 0');
    const { code, stderr } = await agentcore(['deploy'], { cwd: work.folder, env });
    expect(code).toBe(1);
    expect(stderr).toContain('docker build ended with 9:\n  step 3: no such package');
  });

  it('does not guess when the builder names no digest', async () => {
    const env = await builder('docker', 'exit 0');
    const { code, stderr } = await agentcore(['deploy'], { cwd: work.folder, env });
    expect(code).toBe(1);
    expect(stderr).toContain('did not say under which digest');
    expect(platform.runtimes).toHaveLength(0);
  });
});
