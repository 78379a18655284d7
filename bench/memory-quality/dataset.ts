import { readFile } from 'node:fs/promises';

/** One thing that was said in a conversation. */
export interface Said {
  /** What evidence names, e.g. `D1:3`. */
  id: string;
  speaker: string;
  text: string;
  at: Date;
}

export interface Question {
  question: string;
  answer: string;
  category: string;
  /** Ids of what the answer rests on. */
  evidence: string[];
}

/** One long conversation in sessions, and the questions about it. */
export interface Conversation {
  id: string;
  sessions: Said[][];
  questions: Question[];
}

/**
 * Reads a file in the format of LoCoMo (`conversation.session_1`, `qa[].evidence`) or of LongMemEval (`haystack_sessions`,
 * `answer_session_ids`). Throws for any other.
 */
export async function readDataset(file: string): Promise<Conversation[]> {
  const parsed: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!Array.isArray(parsed)) throw new Error(`${file} is no list of conversations`);
  return parsed.map((item: Record<string, unknown>, index) => {
    if (item.conversation !== undefined) return fromLocomo(item, index);
    if (item.haystack_sessions !== undefined) return fromLongMemEval(item, index);
    throw new Error(`${file}: entry ${index + 1} is neither of LoCoMo nor of LongMemEval`);
  });
}

function fromLocomo(item: Record<string, unknown>, index: number): Conversation {
  const conversation = item.conversation as Record<string, unknown>;
  const sessions: Said[][] = [];
  for (let number = 1; Array.isArray(conversation[`session_${number}`]); number++) {
    const at = dateOf(conversation[`session_${number}_date_time`]);
    const turns = conversation[`session_${number}`] as { dia_id: string; speaker: string; text: string }[];
    sessions.push(turns.map(({ dia_id: id, speaker, text }) => ({ id, speaker, text, at })));
  }
  const qa = (item.qa ?? []) as { question: string; answer?: unknown; category?: unknown; evidence?: string[] }[];
  const questions = qa.map(({ question, answer, category, evidence = [] }) => {
    return { question, answer: String(answer ?? ''), category: String(category ?? ''), evidence };
  });
  return { id: String(item.sample_id ?? index + 1), sessions, questions };
}

function fromLongMemEval(item: Record<string, unknown>, index: number): Conversation {
  const ids = (item.haystack_session_ids ?? []) as string[];
  const dates = (item.haystack_dates ?? []) as string[];
  const turns = item.haystack_sessions as { role: string; content: string; has_answer?: boolean }[][];
  const evidence: string[] = [];
  const sessions = turns.map((session, number) =>
    session.map(({ role, content, has_answer: holds }, turn): Said => {
      const id = `${ids[number] ?? number}:${turn}`;
      if (holds) evidence.push(id);
      return { id, speaker: role, text: content, at: dateOf(dates[number]) };
    }),
  );
  const { question, answer, question_type: category } = item;
  return {
    id: String(item.question_id ?? index + 1),
    sessions,
    questions: [{ question: String(question), answer: String(answer), category: String(category), evidence }],
  };
}

/** `1:56 pm on 8 May, 2023` and `2023/05/20 (Sat) 02:21` alike; the epoch for what cannot be read. */
function dateOf(text: unknown): Date {
  const plain = String(text ?? '')
    .replace(/\([A-Za-z]+\)/, '')
    .replace(/^(.*) on (.*)$/, '$2 $1');
  const at = new Date(`${plain} UTC`);
  return Number.isNaN(at.getTime()) ? new Date(0) : at;
}

/** Statements and questions that ask for them in other words, one pair a line with a tab between. */
export async function readParaphrases(file: string): Promise<Conversation> {
  const pairs = (await readFile(file, 'utf8')).trim().split('\n');
  const said = pairs.map((line, index) => {
    const [text = '', question = ''] = line.split('\t');
    return { turn: { id: `${index}`, speaker: '', text, at: new Date(0) }, question };
  });
  return {
    id: 'paraphrases',
    sessions: [said.map(({ turn }) => turn)],
    questions: said.map(({ turn, question }) => ({ question, answer: '', category: '', evidence: [turn.id] })),
  };
}
