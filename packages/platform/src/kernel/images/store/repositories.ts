import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../durable-file.ts';
import { orMissing } from '../../system-error.ts';
import { hexOf, isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';
import { isRepositoryName, isTag } from '../remote/reference.ts';
import { storageError } from './storage-error.ts';
import type { TempFiles } from './temp-files.ts';

/** Directories of an account that name blobs, whatever repositories do. */
const OF_ACCOUNT = ['_blobs', '_fetched', '_made'];
const ACCOUNT = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/;

/**
 * Which manifests, tags and blobs belong to which repository and account, as small files:
 * `repos/<account>/<name, "/" as "+">/{tags/<tag>,manifests/<hex>,blobs/<hex>}`, and of the account as a whole `_blobs/<hex>`,
 * all that it sent, `_fetched/<hex>`, what other registries sent it, and `_made/<hex>`, what was made of its code. Blobs are stored once for everybody; one is seen in a
 * repository only to which it was sent, or mounted by somebody who saw it: knowing its digest is not having it.
 */
export class Repositories {
  readonly #dir: string;
  readonly #temp: TempFiles;

  constructor(dir: string, temp: TempFiles) {
    this.#dir = join(dir, 'repos');
    this.#temp = temp;
  }

  async linkBlob(account: string, name: string, digest: string): Promise<void> {
    await this.#write(join(this.#account(account), '_blobs'), hexOf(digest), '');
    await this.#write(join(this.#repository(account, name), 'blobs'), hexOf(digest), '');
  }

  async hasBlob(account: string, name: string, digest: string): Promise<boolean> {
    return (await orMissing(stat(join(this.#repository(account, name), 'blobs', hexOf(digest))))) !== undefined;
  }

  async linkFetched(account: string, digest: string): Promise<void> {
    await this.#write(join(this.#account(account), '_fetched'), hexOf(digest), '');
  }

  /** Whether another registry has sent this blob to the account. */
  async hasFetched(account: string, digest: string): Promise<boolean> {
    return (await orMissing(stat(join(this.#account(account), '_fetched', hexOf(digest))))) !== undefined;
  }

  /** Notes what was made of code of the account. */
  async linkMade(account: string, digest: string): Promise<void> {
    await this.#write(join(this.#account(account), '_made'), hexOf(digest), '');
  }

  /** Digests of all that an account has sent, or had fetched or made, manifests too. */
  async blobs(account: string): Promise<Set<string>> {
    const found = await Promise.all(OF_ACCOUNT.map((entry) => names(join(this.#account(account), entry))));
    return new Set(
      found
        .flat()
        .map((hex) => `sha256:${hex}`)
        .filter(isDigest),
    );
  }

  async linkManifest(account: string, name: string, digest: string, mediaType: string): Promise<void> {
    await this.#write(join(this.#account(account), '_blobs'), hexOf(digest), '');
    await this.#write(join(this.#repository(account, name), 'manifests'), hexOf(digest), mediaType);
  }

  /** How many manifests, tags and blobs the repositories of an account name, each as often as it is named. */
  async parts(account: string): Promise<number> {
    let count = 0;
    for (const directory of await this.#directories(account))
      for (const kind of ['tags', 'manifests', 'blobs']) count += (await names(join(directory, kind))).length;
    return count;
  }

  /** Media type of a manifest that the repository has, undefined when it has not. */
  async manifestType(account: string, name: string, digest: string): Promise<string | undefined> {
    return orMissing(readFile(join(this.#repository(account, name), 'manifests', hexOf(digest)), 'utf8'));
  }

  async setTag(account: string, name: string, tag: string, digest: string): Promise<void> {
    await this.#write(join(this.#repository(account, name), 'tags'), checkTag(tag), hexOf(digest));
  }

  async tag(account: string, name: string, tag: string): Promise<string | undefined> {
    const hex = await orMissing(readFile(join(this.#repository(account, name), 'tags', checkTag(tag)), 'utf8'));
    return hex !== undefined && isDigest(`sha256:${hex}`) ? `sha256:${hex}` : undefined;
  }

  /** Tags in lexical order; undefined when there is no such repository. */
  async tags(account: string, name: string): Promise<string[] | undefined> {
    const repository = this.#repository(account, name);
    if (!(await orMissing(stat(join(repository, 'manifests'))))) return undefined;
    return (await names(join(repository, 'tags'))).filter(isTag).sort();
  }

  async removeTag(account: string, name: string, tag: string): Promise<boolean> {
    const path = join(this.#repository(account, name), 'tags', checkTag(tag));
    const existed = (await orMissing(stat(path))) !== undefined;
    await rm(path, { force: true });
    return existed;
  }

  /** Removes a manifest and every tag that points to it. */
  async removeManifest(account: string, name: string, digest: string): Promise<boolean> {
    if ((await this.manifestType(account, name, digest)) === undefined) return false;
    for (const tag of (await this.tags(account, name)) ?? []) {
      if ((await this.tag(account, name, tag)) === digest) await this.removeTag(account, name, tag);
    }
    await rm(join(this.#repository(account, name), 'manifests', hexOf(digest)), { force: true });
    return true;
  }

  /** Digests of everything that any account has tagged. */
  async *tagged(): AsyncGenerator<string> {
    for (const account of await names(this.#dir)) {
      for (const directory of await this.#directories(account)) {
        const tags = join(directory, 'tags');
        for (const tag of await names(tags)) {
          const hex = await orMissing(readFile(join(tags, tag), 'utf8'));
          if (hex !== undefined && isDigest(`sha256:${hex}`)) yield `sha256:${hex}`;
        }
      }
    }
  }

  /** Forgets, in every account, blobs and manifests that the store no longer has. */
  async forget(gone: ReadonlySet<string>): Promise<void> {
    for (const account of await names(this.#dir)) {
      const own = OF_ACCOUNT.map((entry) => join(this.#dir, account, entry));
      const inside = (await this.#directories(account)).flatMap((directory) => [
        join(directory, 'manifests'),
        join(directory, 'blobs'),
      ]);
      for (const links of [...own, ...inside]) {
        for (const hex of await names(links)) {
          if (gone.has(`sha256:${hex}`)) await rm(join(links, hex), { force: true });
        }
      }
    }
  }

  /** Every repository with its manifests whose blobs were only known to be the account's, as data directories of November 2026 and before have it. */
  async *withoutBlobs(): AsyncGenerator<{ manifests: string[]; link(digest: string): Promise<void> }> {
    for (const account of await names(this.#dir)) {
      for (const directory of await this.#directories(account)) {
        const blobs = join(directory, 'blobs');
        if (await orMissing(stat(blobs))) continue;
        const manifests = (await names(join(directory, 'manifests'))).map((hex) => `sha256:${hex}`).filter(isDigest);
        yield { manifests, link: (digest) => this.#write(blobs, hexOf(digest), '') };
      }
    }
  }

  /** Of each repository of an account. */
  async #directories(account: string): Promise<string[]> {
    const entries = await names(join(this.#dir, account));
    return entries.filter((entry) => !entry.startsWith('_')).map((entry) => join(this.#dir, account, entry));
  }

  #account(account: string): string {
    if (!ACCOUNT.test(account)) throw new ImageError('invalid', 'That is not an account id.');
    return join(this.#dir, account);
  }

  #repository(account: string, name: string): string {
    if (!isRepositoryName(name)) throw new ImageError('invalid', `"${name.slice(0, 300)}" is not a repository name.`);
    return join(this.#account(account), name.replaceAll('/', '+'));
  }

  async #write(dir: string, name: string, content: string): Promise<void> {
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await replaceFile(join(dir, name), content, this.#temp.next());
    } catch (error) {
      throw storageError(error);
    }
  }
}

function checkTag(tag: string): string {
  if (!isTag(tag)) throw new ImageError('invalid', `"${tag.slice(0, 140)}" is not a tag.`);
  return tag;
}

async function names(dir: string): Promise<string[]> {
  return (await orMissing(readdir(dir))) ?? [];
}
