import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../durable-file.ts';
import { orMissing } from '../system-error.ts';
import { hexOf, isDigest } from './digest.ts';
import { ImageError } from './images.ts';
import { isRepositoryName, isTag } from './reference.ts';
import { storageError } from './storage-error.ts';
import type { TempFiles } from './temp-files.ts';

const ACCOUNT = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/;

/**
 * Which manifests, tags and blobs belong to which account, as small files:
 * `repos/<account>/<name, "/" as "+">/{tags/<tag>,manifests/<hex>}` and `repos/<account>/_blobs/<hex>`.
 * Blobs are stored once for everybody; an account sees only those that it has proved to have by sending them.
 */
export class Repositories {
  readonly #dir: string;
  readonly #temp: TempFiles;

  constructor(dir: string, temp: TempFiles) {
    this.#dir = join(dir, 'repos');
    this.#temp = temp;
  }

  async linkBlob(account: string, digest: string): Promise<void> {
    await this.#write(join(this.#account(account), '_blobs'), hexOf(digest), '');
  }

  async hasBlob(account: string, digest: string): Promise<boolean> {
    return (await orMissing(stat(join(this.#account(account), '_blobs', hexOf(digest))))) !== undefined;
  }

  async blobs(account: string): Promise<string[]> {
    return (await names(join(this.#account(account), '_blobs'))).map((hex) => `sha256:${hex}`).filter(isDigest);
  }

  async linkManifest(account: string, name: string, digest: string, mediaType: string): Promise<void> {
    await this.#write(join(this.#repository(account, name), 'manifests'), hexOf(digest), mediaType);
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
    if (!(await orMissing(stat(repository)))) return undefined;
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
      for (const entry of await names(join(this.#dir, account))) {
        if (entry.startsWith('_')) continue;
        const tags = join(this.#dir, account, entry, 'tags');
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
      for (const entry of await names(join(this.#dir, account))) {
        const links =
          entry === '_blobs' ? join(this.#dir, account, entry) : join(this.#dir, account, entry, 'manifests');
        for (const hex of await names(links)) {
          if (gone.has(`sha256:${hex}`)) await rm(join(links, hex), { force: true });
        }
      }
    }
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
