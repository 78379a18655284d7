import { access, constants, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { delimiter, join } from 'node:path';

/** One way to isolate sessions, and what it lacks. */
export interface Provider {
  provider: string;
  usable: boolean;
  isolation: string;
  /** What its sandboxes use up for each other, when a platform says. */
  shared?: string[];
  missing: { what: string; remedy: string }[];
}

/** A program that makes images; how to get it, where it is not there. */
export type Builder = { builder: string; usable: true } | { builder: string; usable: false; remedy: string };

export interface ProbePlace {
  path: string;
  uid: number | undefined;
  platform: NodeJS.Platform;
  nodeVersion: string;
  dockerSocket: string;
  /** What runs as the first process of each sandbox. */
  init: string;
  cniFolders: string[];
}

/** This machine, as the probe looks at it. */
export function thisMachine(env: Record<string, string | undefined>): ProbePlace {
  return {
    path: `${env.PATH ?? ''}${delimiter}/usr/sbin${delimiter}/sbin`,
    uid: process.getuid?.(),
    platform: process.platform,
    nodeVersion: process.versions.node,
    dockerSocket: env.DOCKER_HOST?.startsWith('unix://')
      ? env.DOCKER_HOST.slice('unix://'.length)
      : '/var/run/docker.sock',
    init: '/usr/bin/tini-static',
    cniFolders: ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni'],
  };
}

/** Looks for what the platform's providers need, without a platform to ask. Finds less than the platform itself: nothing is run. */
export async function probeLocally(place: ProbePlace): Promise<Provider[]> {
  return [await probeOci(place), await probeDocker(place), processProvider];
}

/** What can build images from a Containerfile here. */
export async function findBuilders(place: ProbePlace): Promise<Builder[]> {
  const socket = await stat(place.dockerSocket).then(
    (info) => info.isSocket(),
    () => false,
  );
  const remedy = socket ? 'start Docker, or add yourself to the group docker' : 'install and start Docker';
  return [
    builderOf('docker', socket && (await dockerAnswers(place.dockerSocket)), remedy),
    builderOf('buildah', await findProgram(place.path, 'buildah'), 'apt-get install buildah'),
  ];
}

function builderOf(builder: string, usable: boolean, remedy: string): Builder {
  return usable ? { builder, usable } : { builder, usable, remedy };
}

const processProvider: Provider = {
  provider: 'process',
  usable: true,
  isolation: 'none; for debugging only, and only when asked for by name',
  missing: [],
};

async function probeOci(place: ProbePlace): Promise<Provider> {
  const missing: Provider['missing'] = [];
  if (place.platform !== 'linux')
    missing.push({ what: 'Linux', remedy: 'use Docker here, or run the platform on Linux' });
  if (place.uid !== 0) missing.push({ what: 'root', remedy: 'start the platform as root: sudo npm start' });
  const packages: Record<string, string> = { runc: 'runc', nft: 'nftables', ip: 'iproute2' };
  for (const [program, name] of Object.entries(packages)) {
    if (!(await findProgram(place.path, program))) missing.push({ what: program, remedy: `apt-get install ${name}` });
  }
  if (!(await isExecutable(place.init))) missing.push({ what: place.init, remedy: 'apt-get install tini' });
  const plugins = await Promise.all(place.cniFolders.map((folder) => isExecutable(join(folder, 'host-local'))));
  if (!plugins.includes(true))
    missing.push({ what: 'CNI plugins', remedy: 'apt-get install containernetworking-plugins' });
  return { provider: 'oci', usable: missing.length === 0, isolation: 'container (runc, own network)', missing };
}

async function probeDocker(place: ProbePlace): Promise<Provider> {
  const missing: Provider['missing'] = [];
  if (place.platform !== 'linux')
    missing.push({ what: 'Linux', remedy: 'the network rules need a daemon on a Linux host' });
  if (place.uid !== 0) missing.push({ what: 'root', remedy: 'start the platform as root: sudo npm start' });
  if (!(await dockerAnswers(place.dockerSocket)))
    missing.push({
      what: `a Docker daemon at ${place.dockerSocket}`,
      remedy: 'apt-get install docker.io, and start it',
    });
  if (!(await findProgram(place.path, 'nft'))) missing.push({ what: 'nft', remedy: 'apt-get install nftables' });
  return { provider: 'docker', usable: missing.length === 0, isolation: 'container (Docker, own network)', missing };
}

function dockerAnswers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request({ socketPath, path: '/_ping', timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => resolve(false));
    call.end();
  });
}

async function findProgram(path: string, program: string): Promise<boolean> {
  for (const folder of path.split(delimiter)) {
    if (folder && (await isExecutable(join(folder, program)))) return true;
  }
  return false;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
