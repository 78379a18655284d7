import { lstat, readFile, realpath } from 'node:fs/promises';
import { isAbsolute, normalize } from 'node:path';
import { isIpv4Cidr } from '../is-cidr.ts';
import { unescapeMount } from './host/cgroups.ts';
import type { StagedSpec } from './host-stage.ts';
import { isEndpointAddress } from './network/network-endpoint.ts';
import { type NetworkEndpoint, SandboxError, type SandboxSpec } from './sandbox.ts';

const MIB = 1024 * 1024;
const RESERVED_TARGETS = ['/', '/proc', '/sys', '/dev'];

/** Refuses a specification that no provider could honour; the message names the field. Throws SandboxError `refused`. */
export function checkSpec(spec: SandboxSpec): void {
  must(/^[a-z0-9-]{1,63}$/.test(spec.id), 'id must be 1 to 63 of a-z, 0-9 and -');
  const { limits, network } = spec;
  must(limits.cpu > 0 && limits.cpu <= 1024, 'limits.cpu must be above 0 and at most 1024');
  whole('memoryBytes', limits.memoryBytes, 16 * MIB, 2 ** 50);
  whole('reservedMemoryBytes', limits.reservedMemoryBytes ?? 0, 0, limits.memoryBytes);
  whole('pids', limits.pids, 1, 4_194_304);
  whole('diskBytes', limits.diskBytes, 8 * MIB, 2 ** 44);
  whole('openFiles', limits.openFiles, 16, 1_048_576);
  must(/^sha256:[0-9a-f]{64}$/.test(spec.image.digest), 'image.digest must be sha256: and 64 hexadecimal digits');
  for (const [name, value] of Object.entries({ ...spec.env, ...spec.secretEnv })) {
    must(
      name !== '' && !name.includes('=') && clean(name) && clean(value),
      `env ${JSON.stringify(name.slice(0, 40))} is not a variable`,
    );
  }
  for (const cidr of network.allowCidrs)
    must(isIpv4Cidr(cidr), `network.allowCidrs: ${cidr.slice(0, 60)} is not an IPv4 address range`);
  must(
    network.allowCidrs.length <= 64 && network.hostPorts.length <= 64,
    'network: at most 64 allowCidrs and 64 hostPorts',
  );
  for (const port of network.hostPorts) whole('network.hostPorts', port, 1, 65_535);
  must(!(spec.snapshot && spec.secretEnv), 'secretEnv would be in a snapshot, which is kept');
  checkEndpoints(network.endpoints ?? []);
  for (const { target } of spec.volumes) {
    must(
      isAbsolute(target) && normalize(target) === target && clean(target),
      `volume target ${target} must be an absolute, normal path`,
    );
    must(
      !RESERVED_TARGETS.some((path) => target === path || (path !== '/' && target.startsWith(`${path}/`))),
      `volume target ${target} is reserved`,
    );
  }
}

function checkEndpoints(endpoints: NetworkEndpoint[]): void {
  must(endpoints.length <= 64, 'network: at most 64 endpoints');
  for (const { host, addresses, port } of endpoints) {
    must(
      /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(host),
      'network.endpoints: a host is a name or an IPv4 address',
    );
    must(
      addresses.length > 0 && addresses.length <= 16 && addresses.every(isEndpointAddress),
      `network.endpoints: ${host} must be 1 to 16 IPv4 addresses that are neither loopback nor link-local nor multicast`,
    );
    whole('network.endpoints.port', port, 1, 65_535);
  }
}

/** Refuses what cannot be run or mounted on this machine. Rejects with SandboxError `refused`. */
export async function checkStaged({ image, command, mounts }: StagedSpec): Promise<void> {
  const argv = command ?? [...image.config.entrypoint, ...image.config.cmd];
  must(
    argv.length > 0 && argv[0] !== '',
    'there is nothing to run: the image has no entrypoint or cmd, and no command was given',
  );
  must(argv.every(clean), 'command must not hold NUL characters');
  for (const { source, propagate } of mounts) {
    must(
      isAbsolute(source) && (await lstat(source).catch(() => undefined)) !== undefined,
      `mount source ${source} does not exist`,
    );
    if (propagate) {
      must(
        isShared(await readFile('/proc/self/mountinfo', 'utf8'), await realpath(source)),
        `mounts below ${source} would not appear inside, since it is not on a shared mount (mount --bind ${source} ${source} && mount --make-shared ${source})`,
      );
    }
  }
}

function must(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new SandboxError('refused', `The sandbox cannot be made: ${problem}.`);
}

function whole(field: string, value: number, min: number, max: number): void {
  must(Number.isInteger(value) && value >= min && value <= max, `${field} must be a whole number of ${min} to ${max}`);
}

function clean(text: string): boolean {
  return !text.includes('\0');
}

/** Whether the mount that holds `path` passes later mounts on to others (mount_namespaces(7)). */
function isShared(mountinfo: string, path: string): boolean {
  let holder = '';
  let shared = false;
  for (const line of mountinfo.split('\n')) {
    const [before = ''] = line.split(' - ');
    const fields = before.split(' ');
    const point = unescapeMount(fields[4] ?? '');
    const holds = point !== '' && (path === point || path.startsWith(point === '/' ? '/' : `${point}/`));
    // When several share one place, the last hides the others.
    if (holds && point.length >= holder.length) {
      holder = point;
      shared = fields.slice(6).some((tag) => tag.startsWith('shared:'));
    }
  }
  return shared;
}
