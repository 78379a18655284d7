import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openDirectoryStore } from '../../packages/platform/src/kernel/objects/directory-store.ts';
import { runCommand } from '../../packages/platform/src/kernel/processes/run-command.ts';
import type { Sandbox } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { readPlaces, SharedPlaces } from '../../packages/platform/src/kernel/shared-places/index.ts';
import { host, type OpenLab, type SandboxLab, shell } from './sandbox-lab.ts';

const OUTER = 'fsap-aaaaaaaa';
const INNER = 'fsap-bbbbbbbb';
const OBJECTS = 'fsap-cccccccc';
const AT = '/mnt/place';
const BUCKET = 'shared';

/** Attempts of one who may write to a shared place on what is beside it; every provider that isolates withstands them. */
export function sharedPlaceAttacks(title: string, open: OpenLab): void {
  describe(title, () => {
    let lab: SandboxLab;
    let places: SharedPlaces;
    let home: string;

    const withPlace = async <T>(id: string, use: (sandbox: Sandbox) => Promise<T>, readOnly = false): Promise<T> => {
      const source = await places.source(id);
      const sandbox = await lab.create({ mounts: [{ source, target: AT, readOnly }] });
      try {
        return await use(sandbox);
      } finally {
        await sandbox.stop();
      }
    };
    const said = async (sandbox: Sandbox, script: string): Promise<string> => (await shell(sandbox, script)).out;

    beforeAll(async () => {
      lab = await open();
      home = join(await realpath(lab.dir), 'places');
      await mkdir(join(home, 'outer/inner'), { recursive: true });
      await mkdir(join(home, 'neighbour'));
      await writeFile(join(home, 'neighbour/secret'), 'neighbour');
      await host('chmod', '-R', 'a+rwX', home);
      // Those on the way to it are passed through only.
      await host('chmod', '755', lab.dir);
      const dataDir = join(home, 'data');
      await mkdir(dataDir);
      const objects = await openDirectoryStore({ directory: join(dataDir, 'objects'), clock: systemClock });
      await objects.createBucket(BUCKET, 'test');
      await objects.put({ bucket: BUCKET, key: 'other/secret' }, once('neighbour'));
      for (const key of ['mine/../other/secret', 'mine//deep', 'mine/./dot', 'mine/ok'])
        await objects.put({ bucket: BUCKET, key }, once('odd')).catch(() => undefined);
      places = await SharedPlaces.open({
        places: readPlaces(`${OUTER}=${home}/outer,${INNER}=${home}/outer/inner,${OBJECTS}=s3://${BUCKET}/mine`),
        region: 'us-east-1',
        accountId: '123456789012',
        dataDir,
        objects,
        run: runCommand,
        runBase: join(home, 'run'),
        log: pino({ level: 'silent' }),
      });
    });
    afterAll(async () => {
      await places?.close();
      await lab?.close();
    });

    it('none puts a link in the place of a directory that is shared with others', async () => {
      await withPlace(INNER, (sandbox) => said(sandbox, `echo mine > ${AT}/note`));
      const swap = `mv ${AT}/inner ${AT}/gone && ln -s ${home}/neighbour ${AT}/inner && readlink ${AT}/inner`;
      expect(await withPlace(OUTER, (sandbox) => said(sandbox, swap))).toBe(`${home}/neighbour\n`);
      // The control: whoever follows the name on the host comes to the neighbour.
      expect((await host('cat', join(home, 'outer/inner/secret'))).out).toBe('neighbour');
      expect(await withPlace(INNER, (sandbox) => said(sandbox, `ls ${AT}; cat ${AT}/note`))).toBe('note\nmine\n');
      const back = `rm ${AT}/inner && rm -r ${AT}/gone && ln -s ${home}/neighbour ${AT}/inner`;
      await withPlace(OUTER, (sandbox) => said(sandbox, back));
      await expect(places.source(INNER)).rejects.toMatchObject({ message: expect.stringContaining('leads elsewhere') });
      await withPlace(OUTER, (sandbox) =>
        said(sandbox, `rm ${AT}/inner && mkdir ${AT}/inner && chmod 777 ${AT}/inner`),
      );
      expect(await withPlace(INNER, (sandbox) => said(sandbox, `echo new > ${AT}/note; cat ${AT}/note`))).toBe('new\n');
    });

    it('none leaves a directory by links of either kind, nor leaves what has power outside', async () => {
      await symlink(join(home, 'neighbour'), join(home, 'outer/planted')).catch(() => undefined);
      const tries = [
        `cat ${AT}/planted/secret`,
        `cat ${AT}/../neighbour/secret`,
        `ln -s ${home}/neighbour/secret ${AT}/soft; cat ${AT}/soft`,
        `cat ${AT}/./../../../${home}/neighbour/secret`,
        `ln ${AT}/../../etc/passwd ${AT}/hard`,
        `mknod ${AT}/disk b 7 0 && cat ${AT}/disk`,
        `mknod ${AT}/memory c 1 1 && cat ${AT}/memory`,
      ];
      const roots = join(home, 'outer/roots');
      await host('sh', '-c', `cp /usr/bin/perl ${roots} && chmod 4755 ${roots}`);
      const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
      expect((await host('setpriv', ...nobody, roots, '-e', 'print $>')).out).toBe('0');
      // The control: the planted link leads to it on the host.
      expect((await host('cat', join(home, 'outer/planted/secret'))).out).toBe('neighbour');
      await withPlace(OUTER, async (sandbox) => {
        for (const one of tries) {
          const { code, out } = await shell(sandbox, one);
          expect(out, one).not.toContain('neighbour\n');
          expect(code, one).not.toBe(0);
        }
        await said(sandbox, `cp /bin/busybox ${AT}/power; chmod 6755 ${AT}/power; chmod a+rwx ${AT}/power`);
        // One that is root's outside, for which the bit counts there.
        expect(await said(sandbox, `${AT}/roots -e 'print $>'`)).toMatch(/^[1-9]/);
      });
      // Root inside is nobody outside; on a daemon without user namespaces it was nobody inside.
      expect((await host('stat', '-c', '%u', join(home, 'outer/power'))).out).not.toBe('0\n');
      expect((await host('find', join(home, 'outer'), '-type', 'b', '-o', '-type', 'c')).out).toBe('');
    });

    it('none writes to what it may only read', async () => {
      await writeFile(join(home, 'outer/kept'), 'kept');
      const tries = [
        ...[`echo x > ${AT}/kept`, `rm ${AT}/kept`, `mv ${AT}/kept ${AT}/else`, `touch ${AT}/kept`, `mkdir ${AT}/new`],
        ...[`ln ${AT}/kept ${AT}/link`, `chmod 777 ${AT}/kept`, `mount -o remount,rw ${AT}`],
      ];
      await withPlace(
        OUTER,
        async (sandbox) => {
          for (const one of tries) expect((await shell(sandbox, one)).code, one).not.toBe(0);
        },
        true,
      );
      expect((await host('cat', join(home, 'outer/kept'))).out).toBe('kept');
      await withPlace(OUTER, async (sandbox) => expect((await shell(sandbox, `touch ${AT}/touched`)).code).toBe(0));
    });

    it('none reaches another prefix of the bucket, whatever names there are', async () => {
      await withPlace(OBJECTS, async (sandbox) => {
        // The control: what is below the prefix is there.
        expect(await said(sandbox, `cat ${AT}/ok`)).toBe('odd');
        const long = 'n'.repeat(256);
        const tries = [
          `cat ${AT}/../other/secret`,
          `cat "${AT}/..//other/secret"`,
          `ln -s ../other/secret ${AT}/soft`,
          `ln ${AT}/ok ${AT}/hard`,
          `mv ${AT}/ok ${AT}/../other/taken`,
          `mknod ${AT}/disk b 7 0`,
          `touch ${AT}/${long}`,
          `perl -e 'open(my $f, ">", "${AT}/\\xff\\xfe") or exit 1'`,
          `i=0; while [ $i -lt 20 ]; do mkdir ${AT}/$(printf %0200d $i) && cd ${AT}/$(printf %0200d $i) || exit 1; mkdir -p a/b; cd a/b; for j in 1 2 3 4 5; do mkdir ${'d'.repeat(200)} && cd ${'d'.repeat(200)} || exit 1; done; i=$((i+1)); done`,
        ];
        for (const one of tries) {
          const { code, out } = await shell(sandbox, one);
          expect(out, one).not.toContain('neighbour');
          expect(code, one).not.toBe(0);
        }
        expect(await said(sandbox, `ls -a ${AT} | grep -c other`)).toBe('0\n');
        expect(
          await said(
            sandbox,
            `cp /bin/busybox ${AT}/power; chmod 6755 ${AT}/power 2>/dev/null; stat -c %a ${AT}/power`,
          ),
        ).toBe('777\n');
      });
    });

    it('none holds up the end of its session, nor others, by calls of the file system that are under way', async () => {
      const hold = `for i in 1 2 3 4 5 6 7 8; do (while :; do echo $i > ${AT}/f$i; mv ${AT}/f$i ${AT}/g$i; ls ${AT}; done) >/dev/null 2>&1 & done; exec 7> ${AT}/open; sleep 600 >/dev/null 2>&1 7> ${AT}/open & echo begun`;
      await withPlace(OBJECTS, async (sandbox) => {
        expect(await said(sandbox, hold)).toBe('begun\n');
        await withPlace(OBJECTS, async (other) => {
          expect(await said(other, `echo there > ${AT}/other-file; cat ${AT}/other-file`)).toBe('there\n');
        });
      });
      expect(await withPlace(OBJECTS, (sandbox) => said(sandbox, `cat ${AT}/other-file`))).toBe('there\n');
    });
  });
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
