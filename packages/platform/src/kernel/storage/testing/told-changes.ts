import { errors } from '@agentplatform/contract';
import type { Changes, TakeChanges } from '../change-feed.ts';

/** A feed that tells what its test says. */
export class ToldChanges implements Changes {
  lost = false;
  readonly #subscribers: { topics: readonly string[]; take: TakeChanges }[] = [];

  subscribe(topics: readonly string[], take: TakeChanges): void {
    this.#subscribers.push({ topics, take });
  }

  need(): void {
    if (this.lost) throw errors.unavailable('Changes are lost.');
  }

  async tell(topic: string, key: string): Promise<void> {
    for (const { topics, take } of this.#subscribers) if (topics.includes(topic)) await take([{ topic, key }]);
  }

  async tellAll(): Promise<void> {
    for (const { take } of this.#subscribers) await take('all');
  }
}
