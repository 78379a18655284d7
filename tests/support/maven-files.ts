import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchedOnce } from '../../scripts/test/fetched-once.ts';

const run = promisify(execFile);

/** A folder with these files of an artifact's jar (a pattern of `unzip`). Undefined where it cannot be had (said on stderr): its tests are skipped then. */
export function mavenFiles(
  [group, name, version]: readonly [group: string, name: string, version: string],
  files: string,
): Promise<string | undefined> {
  return fetchedOnce({
    name: `maven-${name}-${version}`,
    what: `${name} ${version} with Maven`,
    async fill(into) {
      const repository = join(into, 'repository');
      const flags = ['-q', '-B', `-Dmaven.repo.local=${repository}`, '-Dtransitive=false'];
      const artifact = `-Dartifact=${[group, name, version].join(':')}`;
      await run('mvn', [...flags, 'dependency:get', artifact], { timeout: 300_000 });
      const jar = join(repository, ...group.split('.'), name, version, `${name}-${version}.jar`);
      await run('unzip', ['-q', jar, files, '-d', into]);
      await rm(repository, { recursive: true });
    },
  });
}
