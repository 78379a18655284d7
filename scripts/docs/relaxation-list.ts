import type { Relaxation } from '@agentplatform/contract';

/** The patterns that are accepted beside those of the published model, for `docs/deviations.md`. */
export function relaxationList(relaxations: readonly Relaxation[]): string {
  return relaxations
    .map(({ plane, shapes, alsoMatches, reason }) => {
      const names = shapes.map((shape) => `\`${shape}\``).join(', ');
      return `### ${names} (${plane})\n\n${reason} Also accepted:\n\n\`\`\`text\n${alsoMatches}\n\`\`\`\n`;
    })
    .join('\n');
}
