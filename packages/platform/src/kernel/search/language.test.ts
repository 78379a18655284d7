import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LANGUAGES, type Language, languageOf } from './language.ts';

/** One sentence of each language, as people say it of themselves. */
const SENTENCES: Record<Language, string> = {
  english: 'I am allergic to hazelnuts and I live in Berlin.',
  spanish: 'Soy alérgica a las nueces y vivo en Madrid con mi hermana.',
  portuguese: 'Eu sou alérgica a nozes e não gosto de viver em Lisboa.',
  french: 'Je suis allergique aux noisettes et mes enfants sont à Lyon.',
  german: 'Ich habe eine Allergie gegen Nüsse und wohne in Berlin.',
  italian: 'Sono allergica alle nocciole e non mi piace il caffè.',
  dutch: 'Ik ben allergisch voor noten en ik woon in een huis met mijn zus.',
  russian: 'У меня аллергия на орехи.',
  turkish: 'Benim bir alerjim var ve bu çok kötü.',
  arabic: 'عندي حساسية من المكسرات',
  hindi: 'मुझे मेवों से एलर्जी है',
  indonesian: 'Saya alergi kacang dan tidak bisa makan itu.',
  romanian: 'Eu sunt alergică la nuci și nu am mai fost acolo.',
  greek: 'Έχω αλλεργία στους ξηρούς καρπούς.',
  hungarian: 'Én nagyon allergiás vagyok a dióra, és ez nem jó.',
  swedish: 'Jag är allergisk mot nötter och jag bor i Malmö med min syster.',
  norwegian: 'Jeg er allergisk mot nøtter og bor ikke i byen, men hun gjør det.',
  danish: 'Jeg har en allergi over for nødder, og jeg er meget glad for dig.',
  finnish: 'Minä olen allerginen pähkinöille ja se on ollut niin aina.',
  lithuanian: 'Aš esu alergiškas riešutams ir tai yra labai blogai.',
};

describe('the language of a text', () => {
  it.each(LANGUAGES)('is told by its common words or its script: %s', (language) => {
    expect(languageOf(SENTENCES[language])).toBe(language);
  });

  it('is English where nothing tells it', () => {
    for (const text of [
      '',
      'Berlin',
      '+49 30 1234567',
      '1 die',
      'The Hague and Den Haag',
      'ja',
      '山田さんは東京に住んでいます',
    ])
      expect(languageOf(text)).toBe('english');
  });

  it('is a language of the list for any text, however long', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 5_000 }), (text) => LANGUAGES.includes(languageOf(text))),
      { seed: 18, numRuns: 200 },
    );
    expect(languageOf('x'.repeat(1_000_000))).toBe('english');
  });
});
