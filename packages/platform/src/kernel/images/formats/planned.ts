import { stat } from 'node:fs/promises';
import { digestOf } from '../digest.ts';
import { hostFile, type LayerEntry } from './layer.ts';

/** An entry of a base's layer; `version` tells when the machine's file behind it has changed. */
export interface Planned {
  entry: LayerEntry;
  version?: string;
}

/** A file of the machine, owned by root in the image. `mode` as on the machine's executables when not given. */
export async function planFile(path: string, source: string, mode?: number): Promise<Planned> {
  const info = await stat(source);
  const bits = mode ?? (info.mode & 0o111 ? 0o755 : 0o644);
  return {
    entry: hostFile(path, source, info.size, { uid: 0, gid: 0 }, bits),
    version: `${info.size} ${info.mtimeMs}`,
  };
}

/** Changes when any input of the plan does. */
export async function planKey(plan: readonly Planned[]): Promise<string> {
  const lines: string[] = [];
  for (const { entry, version } of plan) {
    const { type, path } = entry;
    let content = version ?? '';
    if (type === 'symlink') content = entry.target;
    else if (type === 'file' && version === undefined) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of entry.open()) chunks.push(chunk);
      content = digestOf(Buffer.concat(chunks));
    }
    lines.push([type, path, type === 'symlink' ? '' : entry.mode, entry.uid, entry.gid, content].join('\0'));
  }
  return digestOf(Buffer.from(lines.sort().join('\n')));
}
