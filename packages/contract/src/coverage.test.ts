import { describe, expect, it } from 'vitest';
import { coverageRecorder, coverageReport, drivenOperations, isRealSdk } from './coverage.ts';
import { operations } from './generated/operations.ts';

const js = 'aws-sdk-js/3.1141.0 ua/2.1 os/linux lang/js md/nodejs#24.21.0 api/bedrock-agentcore#3.1141.0';
const boto = 'Boto3/1.44.5 md/Botocore#1.44.5 ua/2.1 os/linux';

describe('coverage', () => {
  it('knows SDKs from other clients', () => {
    expect([js, boto, 'aws-cli/2.31.0 md/awscrt#1'].map(isRealSdk)).toEqual([true, true, true]);
    expect(
      ['', 'curl/8.5.0', 'node', 'undici', 'my-aws-sdk-js-like/3', 'python-requests/2'].map(isRealSdk),
    ).not.toContain(true);
  });

  it('counts an operation once a real SDK had a good answer', () => {
    const lines: string[] = [];
    const record = coverageRecorder((line) => lines.push(line));
    record({ operation: 'GetMemory', userAgent: js, status: 200 });
    record({ operation: 'DeleteMemory', userAgent: js, status: 404 });
    record({ operation: 'ListMemories', userAgent: 'curl/8', status: 200 });
    expect([
      ...drivenOperations([...lines, '', 'not json', 'null', '{"operation":"constructor"}', '{"operation":"GetMemory']),
    ]).toEqual(['GetMemory']);
  });

  it('tells what is built, what is driven and what is missing apart', () => {
    const driven = new Set(['GetMemory', 'ListMemories'] as const);
    const report = coverageReport(driven, new Set(['ListMemories'] as const));
    expect(report).toMatchObject({ total: 250, built: 249, driven: 1, missing: 1 });
    expect(report.pieces.memories).toMatchObject({ total: 21, built: 20, driven: 1, missing: 1 });
    expect(report.pieces.memories?.notImplemented).toEqual(['ListMemories']);
    expect(report.pieces.memories?.undriven).toHaveLength(19);
    const sum = Object.values(report.pieces).reduce((total, piece) => total + piece.total, 0);
    expect(sum).toBe(Object.values(operations).filter(({ plane }) => plane !== 'models').length);
  });

  it('counts what is built where no test has run', () => {
    expect(coverageReport(new Set(), new Set(['ListMemories'] as const))).toMatchObject({ built: 249, driven: 0 });
  });
});
