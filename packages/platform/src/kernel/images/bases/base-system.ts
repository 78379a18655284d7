import { readdir, readlink, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { orMissing } from '../../system-error.ts';
import { AGENT, type LayerEntry, textFile } from '../formats/layer.ts';
import { type Planned, planFile } from '../formats/planned.ts';
import { sharedLibraries } from './shared-libraries.ts';

/** What an agent's shell finds: the everyday tools, as far as the machine has them. */
const COMMANDS = [
  // shells
  'bash dash sh',
  // coreutils
  '[ arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit cut date dd df dir dircolors dirname du',
  'echo env expand expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum mkdir mkfifo mktemp mv',
  'nice nl nohup nproc numfmt od paste pathchk pr printenv printf ptx pwd readlink realpath rm rmdir seq sha1sum sha224sum sha256sum',
  'sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort',
  'tty uname unexpand uniq unlink vdir wc who whoami yes',
  // search, text, archives, processes
  'find xargs grep egrep fgrep sed awk gawk mawk diff cmp tar gzip gunzip zcat bzip2 xz unzip zip ps kill pgrep pkill top free uptime',
  'hostname getent locale which clear less more file tput getopt',
]
  .join(' ')
  .split(' ');

const COMMAND_DIRS = ['/usr/bin', '/bin'];
/**
 * Loaded at run time by name, so no `ldd` tells of them; Python wheels count on those after the first three: what the
 * manylinux policy lets them expect of the system.
 */
const LOADED_BY_NAME = [
  'libnss_files.so.2',
  'libnss_dns.so.2',
  'libresolv.so.2',
  'libgcc_s.so.1',
  'libstdc++.so.6',
  'libz.so.1',
  'libdl.so.2',
  'libm.so.6',
  'libpthread.so.0',
  'librt.so.1',
  'libutil.so.1',
];
const CERTIFICATES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt', '/etc/ssl/cert.pem'];
const TERMINALS = [
  'd/dumb',
  'l/linux',
  's/screen',
  's/screen-256color',
  'v/vt100',
  'x/xterm',
  'x/xterm-256color',
  'x/xterm-color',
];

const ROOT = { uid: 0, gid: 0 };
export const CERTIFICATE_FILE = 'etc/ssl/certs/ca-certificates.crt';

/**
 * The part that every base shares: directories, a small /etc of its own, shell and tools with their libraries, name
 * service, certificates, time zones, terminals, the C.UTF-8 locale. Nothing of the host's users, names or settings.
 */
export async function planSystem(): Promise<Planned[]> {
  const [commands, zones, locale, extras] = await Promise.all([
    planCommands(),
    planTree(
      '/usr/share/zoneinfo',
      'usr/share/zoneinfo',
      (path) => !/^(posix|right)(\/|$)|^(localtime|posixrules)$/.test(path),
    ),
    planTree('/usr/lib/locale/C.utf8', 'usr/lib/locale/C.utf8'),
    planExtras(),
  ]);
  return [...skeleton(), ...etc(), ...commands, ...zones, ...locale, ...extras];
}

function skeleton(): Planned[] {
  const directory = (path: string, mode = 0o755, owner = ROOT): LayerEntry => ({
    type: 'directory',
    path,
    mode,
    ...owner,
  });
  const link = (path: string, target: string): LayerEntry => ({ type: 'symlink', path, target, ...ROOT });
  return [
    ...[
      'dev',
      'etc',
      'home',
      'mnt',
      'opt',
      'proc',
      'run',
      'srv',
      'sys',
      'usr/bin',
      'usr/lib',
      'usr/lib64',
      'usr/local/bin',
      'usr/local/lib',
      'usr/sbin',
      'var/lib',
      'var/log',
    ].map((path) => directory(path)),
    directory('root', 0o700),
    directory('tmp', 0o1777),
    directory('var/tmp', 0o1777),
    directory('home/agent', 0o755, AGENT),
    directory('var/task', 0o755, AGENT),
    link('bin', 'usr/bin'),
    link('sbin', 'usr/sbin'),
    link('lib', 'usr/lib'),
    link('lib64', 'usr/lib64'),
    link('var/run', '../run'),
  ].map((entry) => ({ entry }));
}

function etc(): Planned[] {
  const { uid, gid } = AGENT;
  const files: Record<string, string> = {
    // `node` has the number that it has in the images of Node, so that a Containerfile made for those runs on this base, too.
    'etc/passwd': `root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nagent:x:${uid}:${gid}:agent:/home/agent:/bin/sh\nnode:x:1000:1000:node:/tmp:/bin/sh\n`,
    'etc/group': `root:x:0:\nnogroup:x:65534:\nagent:x:${gid}:\nnode:x:1000:\n`,
    'etc/nsswitch.conf':
      'passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n',
    'etc/hosts': '127.0.0.1\tlocalhost\n::1\tlocalhost\n',
    'etc/hostname': 'agent\n',
    // A sandbox brings its own; the file is there to be mounted over.
    'etc/resolv.conf': '',
    'etc/os-release': 'NAME="agentplatform base"\nID=agentplatform\nVERSION_ID=1\nPRETTY_NAME="agentplatform base"\n',
    'etc/profile': 'export PATH=/usr/local/bin:/usr/bin:/bin\n',
    'etc/services': 'domain 53/udp\ndomain 53/tcp\nhttp 80/tcp\nhttps 443/tcp\n',
    'etc/protocols': 'ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6-icmp 58 IPv6-ICMP\n',
  };
  const entries = Object.entries(files).map(([path, content]) => textFile(path, content));
  const link = (path: string, target: string): LayerEntry => ({ type: 'symlink', path, target, ...ROOT });
  // Where OpenSSL looks, as Debian and as upstream builds it.
  const trust = [
    link('etc/ssl/cert.pem', 'certs/ca-certificates.crt'),
    link('usr/lib/ssl/certs', '/etc/ssl/certs'),
    link('usr/lib/ssl/cert.pem', '/etc/ssl/certs/ca-certificates.crt'),
    link('etc/localtime', '/usr/share/zoneinfo/Etc/UTC'),
  ];
  return [...entries, ...trust].map((entry) => ({ entry }));
}

async function planCommands(): Promise<Planned[]> {
  const plans: Planned[] = [];
  const programs: string[] = [];
  for (const name of COMMANDS) {
    for (const dir of COMMAND_DIRS) {
      const source = await orMissing(realpath(join(dir, name)));
      if (source === undefined) continue;
      plans.push(await planFile(`usr/bin/${name}`, source, 0o755));
      programs.push(source);
      break;
    }
  }
  const { libraries } = await sharedLibraries([...new Set(programs)]);
  const seen = new Set<string>();
  for (const library of libraries) {
    seen.add(library.path);
    plans.push(await planFile(library.path, library.source, 0o755));
  }
  const libc = libraries.find((library) => /\/libc\.so\.\d+$/.test(library.path));
  for (const name of libc ? LOADED_BY_NAME : []) {
    const path = join(dirname(libc?.path ?? ''), name);
    const source = await orMissing(realpath(join('/', path)));
    if (source !== undefined && !seen.has(path)) plans.push(await planFile(path, source, 0o755));
  }
  return plans;
}

async function planExtras(): Promise<Planned[]> {
  const plans: Planned[] = [];
  for (const path of CERTIFICATES) {
    const source = await orMissing(realpath(path));
    if (source === undefined) continue;
    plans.push(await planFile(CERTIFICATE_FILE, source));
    break;
  }
  for (const name of TERMINALS) {
    for (const dir of ['/lib/terminfo', '/usr/share/terminfo', '/usr/lib/terminfo']) {
      const source = await orMissing(realpath(join(dir, name)));
      if (source === undefined) continue;
      plans.push(await planFile(`usr/share/terminfo/${name}`, source));
      break;
    }
  }
  return plans;
}

/** All files of a directory of the machine; a link is kept when it stays inside, and left out when it leads elsewhere. */
export async function planTree(
  dir: string,
  target: string,
  include: (path: string) => boolean = () => true,
): Promise<Planned[]> {
  const plans: Planned[] = [];
  const visit = async (inner: string): Promise<void> => {
    for (const item of (await orMissing(readdir(join(dir, inner), { withFileTypes: true }))) ?? []) {
      const path = inner === '' ? item.name : `${inner}/${item.name}`;
      if (!include(path)) continue;
      const source = join(dir, path);
      if (item.isDirectory()) await visit(path);
      else if (item.isSymbolicLink()) {
        const text = await readlink(source);
        const end = relative(dir, resolve(dirname(source), text));
        const inside = !end.startsWith('..') && (await orMissing(stat(source))) !== undefined && include(end);
        if (inside && !text.startsWith('/'))
          plans.push({ entry: { type: 'symlink', path: `${target}/${path}`, target: text, ...ROOT } });
      } else if (item.isFile()) plans.push(await planFile(`${target}/${path}`, source));
    }
  };
  await visit('');
  return plans;
}
