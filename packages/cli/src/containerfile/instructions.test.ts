// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Containerfiles are written like that.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CliError } from '../cli-error.ts';
import { readInstructions } from './instructions.ts';
import { checkInstructions, planImage, readFrom } from './plan-image.ts';

/** All that is said of a text before anything is copied. */
function plan(text: string, base = {}) {
  const instructions = readInstructions(text);
  checkInstructions(instructions);
  const { from, rest } = readFrom(instructions);
  return { from, ...planImage(rest, base, from.globals, { root: 0, node: 1000 }) };
}

describe('a Containerfile', () => {
  it('is read with comments, continued lines, variables and both forms of commands', () => {
    const text = [
      '# syntax=docker/dockerfile:1',
      'ARG VERSION=24',
      'FROM docker.io/library/node:${VERSION}-slim AS app',
      'ARG VERSION',
      'ARG NAME="my agent" EMPTY',
      'ENV A=1 B="two words" \\',
      '    # a comment between',
      '',
      "    C=${NAME} D=${EMPTY:-none} E=${A:+set} F=$VERSION G='$A' H=a\\ b",
      'ENV LEGACY all the rest',
      'LABEL org.example.title="An agent"',
      'WORKDIR /srv',
      'workdir app',
      'COPY --chown=node:node --chmod=0755 run.sh lib/ ./',
      'COPY ["with space", "/data/"]',
      'EXPOSE 8080 9000/udp',
      'USER 1000:1000',
      'ENTRYPOINT ["node", "--flag"]',
      'CMD echo $HOME',
    ].join('\r\n');
    const { from, steps, settings } = plan(text, { Env: ['PATH=/bin', 'A=0'], Cmd: ['/bin/sh'], WorkingDir: '/' });
    expect(from).toMatchObject({ image: 'docker.io/library/node:24-slim', line: 3 });
    expect(settings).toEqual({
      Env: [
        'PATH=/bin',
        'A=1',
        'B=two words',
        'C=my agent',
        'D=none',
        'E=set',
        'F=24',
        'G=$A',
        'H=a b',
        'LEGACY=all the rest',
      ],
      Labels: { 'org.example.title': 'An agent' },
      WorkingDir: '/srv/app',
      ExposedPorts: { '8080/tcp': {}, '9000/udp': {} },
      User: '1000:1000',
      Entrypoint: ['node', '--flag'],
      Cmd: ['/bin/sh', '-c', 'echo $HOME'],
    });
    expect(steps).toMatchObject([
      { kind: 'folder', path: '/srv' },
      { kind: 'folder', path: '/srv/app' },
      {
        line: 14,
        sources: ['run.sh', 'lib/'],
        target: '/srv/app',
        intoFolder: true,
        owner: { uid: 1000, gid: 1000 },
        mode: 0o755,
      },
      { sources: ['with space'], target: '/data', intoFolder: true, owner: { uid: 0, gid: 0 }, mode: undefined },
    ]);
  });

  it('takes its own entry point without the command of the base', () => {
    const base = { Entrypoint: ['docker-entrypoint.sh'], Cmd: ['node'] };
    expect(plan('FROM a\nENTRYPOINT ["/agent"]', base).settings).not.toHaveProperty('Cmd');
    expect(plan('FROM a\nCMD ["/agent"]', base).settings).toMatchObject({
      Entrypoint: ['docker-entrypoint.sh'],
      Cmd: ['/agent'],
    });
    expect(plan('FROM a\nCMD ["x"]\nENTRYPOINT ["/agent"]', base).settings.Cmd).toEqual(['x']);
  });

  it.each([
    ['FROM a\n\nRUN npm install', /^Line 3 .*RUN needs a builder/],
    ['FROM a\nRUN <<EOF\napt-get install x\nEOF\nCMD ["x"]', /^Line 2 .*RUN/],
    ['FROM a\nCOPY <<EOF /x\nFROM b\nEOF', /^Line 2 .*here-documents/],
    ['FROM a\nCOPY <<EOF /x\nnever ended', /^Line 2 .*no end line/],
    ['FROM a\nFROM b', /^Line 2 .*second FROM/],
    ['FROM a\nCOPY --from=b /x /y', /^Line 2 .*COPY --from/],
    ['FROM a\nADD https://example.org/x /x', /^Line 2 .*nothing is fetched/],
    ['FROM a\nADD files.tar.gz /x', /^Line 2 .*unpacked/],
    ['FROM a\nONBUILD RUN x', /^Line 2 .*ONBUILD/],
    ['FROM a\nVOLUME /x', /^Line 2 .*VOLUME/],
    ['FROM a\nCOPY x', /^Line 2 .*a source and a target/],
    ['FROM a\nCOPY --chown=ada x /x', /^Line 2 .*--chown=ada/],
    ['FROM a\nCOPY --chmod=u+x x /x', /^Line 2 .*--chmod/],
    ['FROM a\nENV X', /^Line 2 .*name=value/],
    ['FROM a\nENV X="open', /^Line 2 .*not closed/],
    ['FROM a\nENV X=${A:?no}', /^Line 2 .*not understood/],
    ['FROM a\nEXPOSE http', /^Line 2 .*not a port/],
    ['FROM', /^Line 1 .*says nothing/],
    ['FROM a b c d', /^Line 1 .*one image/],
    ['ENV A=1\nFROM a', /^Line 1 .*comes before FROM/],
    ['# escape=`\nFROM a', /^Line 1 .*backslash/],
    ['', /no FROM/],
    ['\u0000', /not an instruction/],
  ])('%j is refused with its line', (text, message) => {
    expect(() => plan(text)).toThrow(message);
    expect(() => plan(text)).toThrow(CliError);
  });

  it('whatever it says, is read or refused with a sentence, and its variables do not grow without end', () => {
    const piece = fc.constantFrom(
      ...[
        'FROM a\n',
        'COPY ',
        'RUN ',
        'ENV ',
        'ARG ',
        '\\\n',
        '\n',
        '# ',
        '<<EOF',
        'EOF',
        '${',
        '}',
        '$',
        ':-',
        '"',
        "'",
        '\\',
        ' ',
        'A=',
        'A',
        '[',
        ']',
        '/',
        '--chown=',
        '\t',
        '\r\n',
        'é',
        '\0',
      ],
    );
    const text = fc
      .array(fc.oneof(piece, fc.string({ maxLength: 4 })), { maxLength: 40 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(fc.boolean(), text, (named, rest) => {
        try {
          const { settings } = plan(named ? `FROM a\n${rest}` : rest);
          expect(JSON.stringify(settings).length).toBeLessThan(100_000);
        } catch (error) {
          if (!(error instanceof CliError)) throw error;
          expect(error.message).toMatch(/Line \d+ of the Containerfile: /);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
