/**
 * In the place of a model: makes one record of each thing that was said, word for word, in the form that the prompts of the
 * platform or of mem0 ask for. It takes no time, so that what is measured is everything but the model.
 */
export function scriptedReply(system: string, user: string): string {
  if (system.includes('Memory Extractor') || user.includes('## New Messages')) {
    const said = /"?user"?\s*:\s*(.+)/i.exec(user.slice(user.lastIndexOf('New Messages')))?.[1] ?? user.slice(-200);
    return JSON.stringify({ memory: [{ id: '0', text: said, event: 'ADD' }] });
  }
  if (user.includes('<conversation>')) {
    const lines = [...user.matchAll(/^(\d+)\. \[[^\]]*\] USER: (.+)$/gm)];
    return JSON.stringify(lines.map(([, number, fact]) => ({ fact, messages: [Number(number)] })));
  }
  return '[]';
}
