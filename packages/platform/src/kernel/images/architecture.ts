import { readFileSync } from 'node:fs';
import { endianness } from 'node:os';
import { ImageError } from './images.ts';

/** What an image is built for, or what this machine runs (OCI image index, `platform`). */
export interface Platform {
  os: string;
  architecture: string;
  variant?: string;
}

/** What is known of a machine; read from this process by default, given in tests. */
export interface Host {
  arch: string;
  endianness: 'LE' | 'BE';
  /** 32-bit ARM only: 6, 7 … */
  armVersion?: number;
  /** x86-64 only: words of `flags` in /proc/cpuinfo. */
  cpuFlags?: ReadonlySet<string>;
}

const OCI_NAMES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  ia32: '386',
  arm64: 'arm64',
  arm: 'arm',
  s390x: 's390x',
  riscv64: 'riscv64',
  loong64: 'loong64',
  mips: 'mips',
  mipsel: 'mipsle',
};

// x86-64 psABI micro-architecture levels, by flags that tell each from the one below.
const AMD64_LEVELS: readonly (readonly string[])[] = [
  ['cx16', 'popcnt', 'ssse3', 'sse4_1', 'sse4_2'],
  ['avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'movbe'],
  ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl'],
];

/** The OCI platform of a machine; of this one by default. */
export function machinePlatform(host: Host = thisHost()): Platform {
  const architecture =
    host.arch === 'ppc64' ? (host.endianness === 'LE' ? 'ppc64le' : 'ppc64') : (OCI_NAMES[host.arch] ?? host.arch);
  if (architecture === 'arm') return { os: 'linux', architecture, variant: `v${host.armVersion ?? 7}` };
  if (architecture === 'arm64') return { os: 'linux', architecture, variant: 'v8' };
  if (architecture === 'amd64') return { os: 'linux', architecture, variant: `v${amd64Level(host.cpuFlags)}` };
  return { os: 'linux', architecture };
}

/**
 * How well an image for `offered` suits `machine`: higher is better, undefined means that it cannot run. A variant is a
 * minimum; an image that names none is meant for every machine of that architecture.
 */
export function suitability(machine: Platform, offered: Platform): number | undefined {
  if (offered.os !== machine.os || offered.architecture !== machine.architecture) return undefined;
  const wanted = variantNumber(offered.variant);
  if (wanted === undefined) return offered.variant ? undefined : 0;
  const have = variantNumber(machine.variant);
  if (have === undefined || wanted > have) return undefined;
  return wanted;
}

/** The best suited of `offers`, the first one among equals. */
export function choosePlatform<T>(
  machine: Platform,
  offers: readonly { platform: Platform; value: T }[],
): T | undefined {
  let best: { score: number; value: T } | undefined;
  for (const { platform, value } of offers) {
    const score = suitability(machine, platform);
    if (score !== undefined && (best === undefined || score > best.score)) best = { score, value };
  }
  return best?.value;
}

/** `linux/arm64`, and the variant where it tells something. */
export function describePlatform(platform: Platform, withVariant = true): string {
  const base = `${platform.os}/${platform.architecture}`;
  return withVariant && platform.variant ? `${base}/${platform.variant}` : base;
}

/** The error of an image that this machine cannot run; names both sides and `remedy`, by default how an image that fits is built. */
export function architectureError(
  what: string,
  machine: Platform,
  offered: readonly Platform[],
  remedy = `Build it for this machine, for example with "docker build --platform ${describePlatform(machine, false)}".`,
): ImageError {
  const here = describePlatform(
    machine,
    offered.some((p) => p.architecture === machine.architecture),
  );
  const there =
    offered.length === 0 ? 'no platform at all' : [...new Set(offered.map((p) => describePlatform(p)))].join(', ');
  return new ImageError('architecture', `${what} is built for ${there}, but this machine runs ${here}. ${remedy}`);
}

function variantNumber(variant: string | undefined): number | undefined {
  const match = variant === undefined ? null : /^v(\d{1,2})$/.exec(variant);
  return match ? Number(match[1]) : undefined;
}

function amd64Level(flags: ReadonlySet<string> | undefined): number {
  let level = 1;
  for (const needed of AMD64_LEVELS) {
    if (!flags || !needed.every((flag) => flags.has(flag))) break;
    level += 1;
  }
  return level;
}

function thisHost(): Host {
  const variables: Record<string, unknown> = { ...process.config.variables };
  const armVersion = Number(variables.arm_version);
  return {
    arch: process.arch,
    endianness: endianness(),
    armVersion: Number.isInteger(armVersion) ? armVersion : undefined,
    cpuFlags: process.arch === 'x64' ? readCpuFlags() : undefined,
  };
}

function readCpuFlags(): ReadonlySet<string> {
  try {
    const line = /^flags\s*:\s*(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'));
    return new Set(line?.[1]?.split(' '));
  } catch {
    return new Set();
  }
}
