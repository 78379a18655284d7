import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerApi } from '../../packages/platform/src/kernel/sandbox/docker/docker-api.ts';
import { DockerProvider } from '../../packages/platform/src/kernel/sandbox/docker/docker-provider.ts';
import { INSTANCE_LABEL } from '../../packages/platform/src/kernel/sandbox/docker/docker-record.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { items, property } from '../../packages/platform/src/kernel/sandbox/records/json-path.ts';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { SandboxLab, shell } from './sandbox-lab.ts';

describe('a Docker daemon that others use too', () => {
  let daemon: DockerDaemon;
  let api: DockerApi;
  let lab: SandboxLab;
  let skeleton: string;
  let prefix: string;

  const inspect = (container: string): Promise<unknown> => api.json('GET', `/containers/${container}/json`);
  /** A container that is not the platform's. */
  const foreign = async (name: string, labels: Record<string, string> = {}): Promise<string> =>
    String(
      property(
        await api.json('POST', '/containers/create', {
          query: { name },
          body: { Image: skeleton, Cmd: ['x'], Labels: labels },
        }),
        'Id',
      ),
    );
  const all = async (): Promise<string[]> => {
    const found = await api.json('GET', '/containers/json', { query: { all: '1' } });
    return items({ found }, 'found').map((one) => String(property(one, 'Id')));
  };

  beforeAll(async () => {
    daemon = await DockerDaemon.start();
    api = new DockerApi(daemon.socketPath);
    lab = await SandboxLab.open({}, (given) => new DockerProvider({ ...given, socketPath: daemon.socketPath }));
    const sandbox = await lab.create({ id: 'first' });
    ({ prefix } = instancePlaces(await realpath(join(lab.dir, 'data')), '/run/agentplatform'));
    skeleton = String(property(property(await inspect(`${prefix}-first`), 'Config'), 'Image'));
    await sandbox.stop();
  });
  afterAll(async () => {
    await lab?.close();
    api?.close();
    await daemon?.stop();
  });

  it('keeps what others have under a name of a sandbox, and under labels that are nearly ours', async () => {
    const taken = await foreign(`${prefix}-taken`);
    const kept = [
      taken,
      await foreign('other', { [INSTANCE_LABEL]: 'ap0000000000' }),
      await foreign('bare', { 'agentplatform.sandbox': '{}' }),
    ];
    await expect(lab.create({ id: 'taken' })).rejects.toMatchObject({ name: 'SandboxError' });
    await lab.provider.sweep(new Set());
    expect((await all()).toSorted()).toEqual(kept.toSorted());
    // The control: one that is its own goes.
    await lab.create({ id: 'own' });
    expect(await all()).toHaveLength(4);
    await lab.provider.sweep(new Set());
    expect((await all()).toSorted()).toEqual(kept.toSorted());
    for (const one of kept) await api.json('DELETE', `/containers/${one}`, { query: { force: '1' } });
  });

  it('is reached from no sandbox, and gives none what it could', async () => {
    const sandbox = await lab.create({ id: 'inside', env: { TOKEN: 'token-of-the-sandbox' } });
    const look = `find / -name '*.sock' 2>/dev/null; ls ${daemon.dir} 2>/dev/null; cat /proc/1/mountinfo | grep -c docker.sock`;
    expect((await shell(sandbox, look)).out).toBe('0\n');
    const said = await inspect(`${prefix}-inside`);
    const hostConfig = property(said, 'HostConfig');
    expect(hostConfig).toMatchObject({
      Privileged: false,
      CapAdd: null,
      CapDrop: ['ALL'],
      ReadonlyRootfs: true,
      PidMode: '',
      IpcMode: 'private',
      Devices: null,
      PublishAllPorts: false,
    });
    expect(property(hostConfig, 'SecurityOpt')).toEqual(
      expect.arrayContaining(['no-new-privileges', expect.stringMatching(/^seccomp=\{/)]),
    );
    // Nothing of the image's own: who writes it decides over none of these.
    expect(property(said, 'Config')).toMatchObject({ Volumes: null, OnBuild: null });
    expect(property(property(said, 'Config'), 'Healthcheck')).toBeUndefined();
    // What remains: who may ask the daemon reads the environment of a sandbox there, its credentials too.
    expect(property(property(said, 'Config'), 'Env')).toContain('TOKEN=token-of-the-sandbox');
    await sandbox.stop();
  });
});
