import { inSlices } from '../../../kernel/in-slices.ts';
import type { Hit } from '../../../kernel/search/index.ts';
import type { GatewayTool } from '../gateway-tools.ts';
import { digestOf } from '../tools/index.ts';

/** The vectors of a gateway's tools in memory, all of one model; each tool is compared. */
export class VectorList {
  readonly #tools: readonly GatewayTool[];
  readonly #dimensions: number;
  /** Those of the tools one after the other. */
  readonly #values: Float32Array;
  readonly #there: Uint8Array;
  /** Places in the list of tools, by what their vectors are kept under: tools of one text share one. */
  readonly #places = new Map<string, number[]>();
  readonly #byName = new Map<string, number>();
  #made = 0;

  private constructor(tools: readonly GatewayTool[], dimensions: number) {
    this.#tools = tools;
    this.#dimensions = dimensions;
    this.#values = new Float32Array(tools.length * dimensions);
    this.#there = new Uint8Array(tools.length);
  }

  /** Made in slices. What the list of before has of the same texts is taken over. */
  static async of(tools: readonly GatewayTool[], dimensions: number, before?: VectorList): Promise<VectorList> {
    const list = new VectorList(tools, dimensions);
    await inSlices(tools, ({ listed, target, tool }, at) => {
      const key = keyOf(target.arn, digestOf(tool));
      const places = list.#places.get(key);
      if (places) places.push(at);
      else list.#places.set(key, [at]);
      list.#byName.set(listed, at);
    });
    if (before) list.#takeOver(before);
    return list;
  }

  /** How many of the tools have a vector, and how many there are. */
  get progress(): { made: number; tools: number } {
    return { made: this.#made, tools: this.#tools.length };
  }

  /** The digests of those that have none, by the ARNs of their targets, at most so many at once. */
  *missing(most: number): Generator<Map<string, string[]>> {
    let missing = new Map<string, string[]>();
    let count = 0;
    for (const [key, [at = 0]] of this.#places) {
      if (this.#there[at]) continue;
      const { arn, digest } = partsOf(key);
      const digests = missing.get(arn);
      if (digests) digests.push(digest);
      else missing.set(arn, [digest]);
      if (++count % most !== 0) continue;
      yield missing;
      missing = new Map();
    }
    if (missing.size > 0) yield missing;
  }

  /** Takes a vector; one of a text that no tool has, or of another length, is passed over. */
  add(arn: string, digest: string, vector: Float32Array): void {
    if (vector.length === this.#dimensions) this.#put(keyOf(arn, digest), vector);
  }

  /** The nearest, nearest first; the score is the cosine. */
  nearest(vector: Float32Array, limit: number): Hit[] {
    const best: { at: number; score: number }[] = [];
    for (let at = 0; at < this.#tools.length; at++) {
      if (!this.#there[at]) continue;
      const score = this.#cosine(at, vector);
      if (best.length === limit && score <= (best.at(-1)?.score ?? 0)) continue;
      const place = best.findIndex((one) => one.score < score);
      best.splice(place < 0 ? best.length : place, 0, { at, score });
      if (best.length > limit) best.pop();
    }
    return best.map(({ at, score }) => ({ id: this.#tools[at]?.listed ?? '', score }));
  }

  /** The cosines of these, of those that have a vector. */
  cosines(names: readonly string[], vector: Float32Array): Map<string, number> {
    return new Map(
      names.flatMap((name): [string, number][] => {
        const at = this.#byName.get(name);
        return at !== undefined && this.#there[at] ? [[name, this.#cosine(at, vector)]] : [];
      }),
    );
  }

  #takeOver(before: VectorList): void {
    for (const key of this.#places.keys()) {
      const vector = before.#vectorOf(key);
      if (vector) this.#put(key, vector);
    }
  }

  #cosine(at: number, vector: Float32Array): number {
    const from = at * this.#dimensions;
    let sum = 0;
    for (let i = 0; i < this.#dimensions; i++) sum += (this.#values[from + i] ?? 0) * (vector[i] ?? 0);
    return sum;
  }

  #put(key: string, vector: Float32Array): void {
    for (const at of this.#places.get(key) ?? []) {
      this.#values.set(vector, at * this.#dimensions);
      this.#made += this.#there[at] ? 0 : 1;
      this.#there[at] = 1;
    }
  }

  #vectorOf(key: string): Float32Array | undefined {
    const at = this.#places.get(key)?.[0];
    if (at === undefined || !this.#there[at]) return undefined;
    return this.#values.subarray(at * this.#dimensions, (at + 1) * this.#dimensions);
  }
}

/** No digest has a space. */
function keyOf(arn: string, digest: string): string {
  return `${digest} ${arn}`;
}

function partsOf(key: string): { arn: string; digest: string } {
  const at = key.indexOf(' ');
  return { digest: key.slice(0, at), arn: key.slice(at + 1) };
}
