import { ROOT_ID } from './fuse-wire.ts';
import type { OpenContent } from './open-content.ts';

/** A file or directory that the kernel knows by number. */
export interface FileNode {
  id: number;
  kind: 'file' | 'directory';
  /** Undefined for the root and for what was removed: it is under no name any more. */
  place: { parent: FileNode; name: string } | undefined;
  children: Map<string, FileNode>;
  /** How often the kernel was told of it and has not forgotten. */
  known: number;
  /** Of a file that somebody has open. */
  content: OpenContent | undefined;
}

/** The kernel's numbers, and the paths that they stand for now. */
export class Nodes {
  readonly #byId = new Map<number, FileNode>();
  #last = ROOT_ID;

  constructor() {
    this.#byId.set(ROOT_ID, node(ROOT_ID, 'directory', undefined));
  }

  get(id: number): FileNode | undefined {
    return this.#byId.get(id);
  }

  /** The node of a name, a new one when the name has no node or now means something else. */
  at(parent: FileNode, name: string, kind: FileNode['kind']): FileNode {
    const there = parent.children.get(name);
    if (there?.kind === kind) return there;
    if (there) this.remove(there);
    this.#last += 1;
    const made = node(this.#last, kind, { parent, name });
    parent.children.set(name, made);
    this.#byId.set(made.id, made);
    return made;
  }

  /** It is under no name any more; who has it open keeps it. */
  remove(found: FileNode): void {
    const { place } = found;
    if (place?.parent.children.get(place.name) === found) place.parent.children.delete(place.name);
    found.place = undefined;
  }

  move(moved: FileNode, parent: FileNode, name: string): void {
    const there = parent.children.get(name);
    if (there && there !== moved) this.remove(there);
    const { place } = moved;
    if (place) place.parent.children.delete(place.name);
    moved.place = { parent, name };
    parent.children.set(name, moved);
  }

  forget(id: number, times: number): void {
    const found = this.#byId.get(id);
    if (!found || id === ROOT_ID) return;
    found.known -= times;
    this.drop(found);
  }

  /** Lets go of it when neither the kernel nor anything below it needs it. */
  drop(found: FileNode): void {
    if (found.id === ROOT_ID || found.known > 0 || found.children.size > 0 || found.content) return;
    const parent = found.place?.parent;
    this.remove(found);
    this.#byId.delete(found.id);
    if (parent) this.drop(parent);
  }

  /** Relative to the root, `''` for the root itself; undefined when it, or what it is in, was removed. */
  path(found: FileNode): string | undefined {
    const names: string[] = [];
    for (let at = found; at.id !== ROOT_ID; ) {
      if (!at.place) return undefined;
      names.push(at.place.name);
      at = at.place.parent;
    }
    return names.reverse().join('/');
  }

  /** The files below a directory, or the file itself, that somebody has open. */
  *openBelow(found: FileNode): Iterable<OpenContent> {
    if (found.content) yield found.content;
    for (const child of found.children.values()) yield* this.openBelow(child);
  }

  *open(): Iterable<OpenContent> {
    for (const { content } of this.#byId.values()) if (content) yield content;
  }
}

function node(id: number, kind: FileNode['kind'], place: FileNode['place']): FileNode {
  return { id, kind, place, children: new Map(), known: 0, content: undefined };
}
