import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../../packages/platform/src/kernel/processes/run-command.ts';

/** A canary where it must not be. */
export interface Sighting {
  field: string;
  /** A file, or the number of a process. */
  where: string;
}

/** Too short a text is found by chance. */
const LEAST_CHARS = 16;

/** Secrets that are made to be looked for, by the field that took them: whoever finds one has found a leak. */
export class Canaries {
  readonly #texts = new Map<string, string>();

  get size(): number {
    return this.#texts.size;
  }

  /** A new secret. Letters and digits alone fit every pattern, and are the same in JSON and in an address. */
  plant(field: string): string {
    const text = `c4nary${randomBytes(16).toString('hex')}`;
    this.add(field, text);
    return text;
  }

  /** A new private key (P-256, PKCS #8), of which a piece from the middle is looked for. */
  plantKey(field: string, format: 'der' | 'pem'): string {
    for (;;) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const base64 = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
      // The number itself lies there, on one line of the PEM.
      const [piece] = /[A-Za-z0-9]{16}/.exec(base64.slice(48, 64)) ?? [];
      if (piece === undefined) continue;
      this.add(field, piece);
      return format === 'der' ? base64 : privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    }
  }

  /** Has a secret looked for that somebody else has made. Throws where it is too short to be told from chance. */
  add(field: string, text: string): void {
    if (text.length < LEAST_CHARS) throw new Error(`${field} is too short to be looked for: ${text.length} characters`);
    this.#texts.set(field, text);
  }

  get(field: string): string {
    const text = this.#texts.get(field);
    if (text === undefined) throw new Error(`nothing is planted in ${field}`);
    return text;
  }

  /** The fields whose secret a text holds, in whatever form. */
  inText(text: string): string[] {
    return [...this.#texts].filter(([, secret]) => forms(secret).some((form) => text.includes(form))).map(([of]) => of);
  }

  /** Which files below these directories hold which of them; all are looked for in one go. */
  async inFiles(directories: readonly string[]): Promise<Sighting[]> {
    const fields = new Map([...this.#texts].flatMap(([field, text]) => forms(text).map((form) => [form, field])));
    // By the input: a command line is one of the places where they must not be.
    const { stdout } = await runCommand(['grep', '-raosF', '--devices=skip', '-f', '-', '--', ...directories], {
      ...{ input: [...fields.keys()].join('\n'), timeoutMs: 150_000 },
    });
    const lines = new Set(stdout.split('\n').filter((line) => line !== ''));
    return [...lines].map((line) => {
      const at = line.lastIndexOf(':');
      return { where: line.slice(0, at), field: fields.get(line.slice(at + 1)) ?? line };
    });
  }

  /** Which processes of the machine hold which of them in their command line or environment; `excused` says of whom that is right. */
  async inProcesses(
    what: 'cmdline' | 'environ',
    excused: (field: string, text: string) => boolean = () => false,
  ): Promise<Sighting[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const texts = await Promise.all(
      pids.map(async (pid) => ({ pid, text: await readFile(join('/proc', pid, what), 'latin1').catch(() => '') })),
    );
    return texts.flatMap(({ pid, text }) =>
      this.inText(text)
        .filter((field) => !excused(field, text))
        .map((field) => ({ where: pid, field })),
    );
  }
}

/** The same text in the ways of writing it down that a file could have. */
function forms(text: string): string[] {
  return [
    text,
    Buffer.from(text).toString('hex'),
    // Of the three, wherever it begins; the ends depend on what stands beside it.
    ...[0, 1, 2].map((skip) =>
      Buffer.from(text.slice(skip, skip + 3 * Math.floor((text.length - skip) / 3))).toString('base64'),
    ),
  ];
}
