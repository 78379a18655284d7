/**
 * A text of a document as people and models are to see it: without control characters, directions of writing, characters of no width and
 * those that only carry hidden text (tags), and at most `longest` characters of it.
 */
export function plainText(text: string, longest: number): string {
  const visible = text
    .replaceAll('\r\n', '\n')
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u115f\u1160\u3164\uffa0]/gu, (char) =>
      char === '\n' || char === '\t' ? char : '',
    );
  const plain = visible.trim();
  return plain.length > longest ? `${plain.slice(0, longest - 1).toWellFormed()}…` : plain;
}
