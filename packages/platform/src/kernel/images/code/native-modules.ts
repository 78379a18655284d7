import { architectureError, type Platform } from '../architecture.ts';
import type { ZipItem } from '../formats/zip.ts';

/** `e_machine` of the ELF header, for the architectures that images are named by. */
const MACHINES: Readonly<Record<number, string>> = {
  3: '386',
  21: 'ppc64le',
  22: 's390x',
  40: 'arm',
  62: 'amd64',
  183: 'arm64',
  243: 'riscv64',
  258: 'loong64',
};

const NATIVE = /\.(so|node)$|\.so\.\d/;
const HEADER = 20;

/**
 * Refuses code whose compiled modules are all for another architecture: it would start and then fail at its first import.
 * A package may carry modules for several; one that fits is enough. Throws `ImageError('architecture')`.
 */
export async function checkNativeModules(items: readonly ZipItem[], machine: Platform): Promise<void> {
  const others = new Map<string, string>();
  for (const item of items) {
    if (item.type !== 'file' || !NATIVE.test(item.path) || item.size < HEADER) continue;
    const architecture = elfArchitecture(await firstBytes(item.open()));
    if (architecture === machine.architecture) return;
    if (architecture !== undefined && !others.has(architecture)) others.set(architecture, item.path);
  }
  const [first] = others;
  if (!first) return;
  const offered = [...others.keys()].map((architecture) => ({ os: 'linux', architecture }));
  throw architectureError(
    `The compiled code in the zip (${first[1]})`,
    machine,
    offered,
    'Install the packages on such a machine, or for it: "pip install --platform …" or "npm install --cpu …".',
  );
}

/** The architecture of an ELF file by its first 20 bytes; undefined for anything else. */
export function elfArchitecture(bytes: Uint8Array): string | undefined {
  if (bytes.length < HEADER || Buffer.from(bytes.subarray(0, 4)).toString('latin1') !== '\x7fELF') return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const littleEndian = bytes[5] === 1;
  const machine = view.getUint16(18, littleEndian);
  if (machine === 21 && !littleEndian) return 'ppc64';
  return MACHINES[machine] ?? `ELF machine ${machine}`;
}

async function firstBytes(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= HEADER) break;
  }
  return Buffer.concat(chunks);
}
