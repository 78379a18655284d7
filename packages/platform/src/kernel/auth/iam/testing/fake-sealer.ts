import type { Sealer } from '../ports.ts';

/** Hides nothing, but insists on the context and notices foreign text, as a real one does. `generation` stands for its key. */
export function fakeSealer(): Sealer & { generation: number } {
  const sealer = {
    generation: 1,
    seal: async (plain: string, context: string) =>
      `${sealer.generation}|${context}|${Buffer.from(plain).toString('hex')}`,
    open: async (sealed: string, context: string) => {
      const [, bound, hex] = sealed.split('|');
      if (bound !== context || hex === undefined) throw new Error('sealed for something else');
      return Buffer.from(hex, 'hex').toString();
    },
  };
  return sealer;
}
