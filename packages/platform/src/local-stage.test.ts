import { describe, expect, it } from 'vitest';
import type { PreparedImage } from './kernel/sandbox/host-stage.ts';
import type { Volume } from './kernel/sandbox/index.ts';
import { LocalStage, type StageRooms } from './local-stage.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const prepared = (rootfs: string): PreparedImage => ({
  digest,
  rootfs,
  config: { entrypoint: [], cmd: [], env: [], workingDir: '', user: '' },
});
const rooms: StageRooms = {
  images: { prepare: async () => prepared('/own'), prepareCommon: async () => prepared('/common') },
  storage: { mount: async (sandboxId, target) => ({ source: `/storage/${sandboxId}`, target, readOnly: false }) },
  places: { source: async (id) => `/places/${id}` },
};
const storage: Volume = { kind: 'session-storage', target: '/mnt/own' };
const place: Volume = { kind: 'shared-place', accessPoint: 'fsap-00000001', target: '/mnt/all', readOnly: true };

describe('the stage of this machine', () => {
  it('finds images and volumes in the rooms that have them', async () => {
    const stage = new LocalStage();
    stage.open(rooms);
    expect((await stage.image({ digest })).rootfs).toBe('/own');
    expect((await stage.image({ digest, common: true })).rootfs).toBe('/common');
    expect(await stage.volume(storage, 's1')).toEqual({ source: '/storage/s1', target: '/mnt/own', readOnly: false });
    expect(await stage.volume(place, 's1')).toEqual({
      source: '/places/fsap-00000001',
      target: '/mnt/all',
      readOnly: true,
    });
  });

  it('finds nothing before they are open, and no storage where there is none', async () => {
    const stage = new LocalStage();
    await expect(stage.image({ digest })).rejects.toMatchObject({ reason: 'unavailable' });
    await expect(stage.volume(place, 's1')).rejects.toMatchObject({ reason: 'unavailable' });
    stage.open({ ...rooms, storage: undefined });
    await expect(stage.volume(storage, 's1')).rejects.toMatchObject({ reason: 'refused' });
  });
});
