import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findBuilders, type ProbePlace, probeLocally } from './local-probe.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentcore-probe-'));
  return () => rm(folder, { recursive: true });
});

async function place(programs: string[], more: Partial<ProbePlace> = {}): Promise<ProbePlace> {
  await mkdir(join(folder, 'bin'));
  for (const name of programs) {
    await writeFile(join(folder, 'bin', name), '');
    await chmod(join(folder, 'bin', name), 0o755);
  }
  const base = { uid: 0, platform: 'linux' as const, nodeVersion: '24.0.0', dockerSocket: join(folder, 'docker.sock') };
  return {
    ...base,
    path: join(folder, 'bin'),
    init: join(folder, 'bin', 'tini-static'),
    cniFolders: [join(folder, 'bin')],
    ...more,
  };
}

describe('probeLocally', () => {
  it('finds the OCI provider usable when root and all programs are there', async () => {
    const [oci] = await probeLocally(await place(['runc', 'tini-static', 'nft', 'ip', 'host-local']));
    expect(oci).toMatchObject({ provider: 'oci', usable: true, missing: [] });
  });

  it('names each missing thing with the command that gets it', async () => {
    const [oci] = await probeLocally(await place(['ip'], { uid: 1000 }));
    expect(oci?.usable).toBe(false);
    expect(oci?.missing).toEqual([
      { what: 'root', remedy: 'start the platform as root: sudo npm start' },
      { what: 'runc', remedy: 'apt-get install runc' },
      { what: 'nft', remedy: 'apt-get install nftables' },
      { what: join(folder, 'bin', 'tini-static'), remedy: 'apt-get install tini' },
      { what: 'CNI plugins', remedy: 'apt-get install containernetworking-plugins' },
    ]);
  });
});

describe('probeLocally of Docker', () => {
  it('believes in a daemon only when it answers', async () => {
    const where = await place(['nft']);
    const docker = async () => (await probeLocally(where)).find(({ provider }) => provider === 'docker');
    expect((await docker())?.missing).toEqual([
      { what: `a Docker daemon at ${where.dockerSocket}`, remedy: 'apt-get install docker.io, and start it' },
    ]);
    const engine = createServer((_request, response) => response.end('OK')).listen(where.dockerSocket);
    await once(engine, 'listening');
    expect(await docker()).toMatchObject({ usable: true, missing: [] });
    engine.close();
  });
});

describe('findBuilders', () => {
  it('believes in Docker only when its engine answers', async () => {
    const where = await place(['docker']);
    expect(await findBuilders(where)).toEqual([
      { builder: 'docker', usable: false, remedy: 'install and start Docker' },
      { builder: 'buildah', usable: false, remedy: 'apt-get install buildah' },
    ]);
    const engine = createServer((_request, response) => response.end('OK')).listen(where.dockerSocket);
    await once(engine, 'listening');
    // Nothing is to be mended about what works.
    expect(await findBuilders(where)).toEqual([
      { builder: 'docker', usable: true },
      { builder: 'buildah', usable: false, remedy: 'apt-get install buildah' },
    ]);
    engine.close();
  });
});
