import stopword from 'stopword';

/** Languages whose stemmers the database has, by its names for them, and the words of each that stand in nearly every sentence. */
const COMMON_WORDS = {
  ...{ english: stopword.eng, spanish: stopword.spa, portuguese: stopword.por, french: stopword.fra },
  ...{ german: stopword.deu, italian: stopword.ita, dutch: stopword.nld, russian: stopword.rus },
  ...{ turkish: stopword.tur, arabic: stopword.ara, hindi: stopword.hin, indonesian: stopword.ind },
  ...{ romanian: stopword.ron, greek: stopword.ell, hungarian: stopword.hun, swedish: stopword.swe },
  ...{ norwegian: stopword.nob, danish: stopword.dan, finnish: stopword.fin, lithuanian: stopword.lit },
};
export type Language = keyof typeof COMMON_WORDS;
export const LANGUAGES = Object.keys(COMMON_WORDS) as readonly Language[];

/** Those that nearly alone are written in a script. */
const SCRIPTS: readonly [script: RegExp, language: Language][] = [
  [/\p{Script=Cyrillic}/gu, 'russian'],
  [/\p{Script=Arabic}/gu, 'arabic'],
  [/\p{Script=Devanagari}/gu, 'hindi'],
  [/\p{Script=Greek}/gu, 'greek'],
];

/** So much of a text tells its language. */
const LOOKED_AT = 2_000;
/** A single common word of another language may be a name or a loan. */
const LEAST = 2;

const languagesOf = new Map<string, Language[]>();
for (const language of LANGUAGES)
  for (const word of COMMON_WORDS[language]) languagesOf.set(word, [...(languagesOf.get(word) ?? []), language]);

/**
 * The language of a text by its script, or by its common words: English where they do not tell, as in a name alone. It decides by which stemmer
 * the text's words are found.
 */
export function languageOf(text: string): Language {
  const start = text.slice(0, LOOKED_AT).toLowerCase();
  const letters = start.match(/\p{L}/gu)?.length ?? 0;
  const script = SCRIPTS.find(([letter]) => (start.match(letter)?.length ?? 0) * 2 > letters);
  if (script) return script[1];
  const counts = new Map<Language, number>();
  for (const word of start.match(/[\p{L}\p{M}]+/gu) ?? [])
    for (const language of languagesOf.get(word) ?? []) counts.set(language, (counts.get(language) ?? 0) + 1);
  let best: Language = 'english';
  let most = Math.max(LEAST - 1, counts.get(best) ?? 0);
  for (const language of LANGUAGES) {
    const count = counts.get(language) ?? 0;
    if (count <= most) continue;
    best = language;
    most = count;
  }
  return best;
}
