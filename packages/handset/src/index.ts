// What another program may use of handset: building, watching, serving, previewing and proxying a project.

export { launchChromium } from './browser/launch.ts';
export { type Assembler, type AssemblerOptions, type Assembly, createAssembler } from './build/assembler.ts';
export { buildOnce } from './build/build-once.ts';
export type { Output } from './build/output.ts';
export { lintProject } from './lint/lint.ts';
export { writeWidgetArchive } from './pack/widget-archive.ts';
export type { CompilePlugin, CompileRequest, CompileResult, CompileTarget, SourceMapV3 } from './plugins/plugin.ts';
export { DEVICES, type Device, type DeviceName } from './preview/devices.ts';
export { openPreview, type Preview } from './preview/preview.ts';
export { type Problem, ProblemError } from './problem.ts';
export { PROBLEM_CATALOGUE, type ProblemCode } from './problem-catalogue.ts';
export { openProject, type Project } from './project/project.ts';
export type { Exchange } from './proxy/exchange.ts';
export { type ProxyServer, startProxy } from './proxy/proxy-server.ts';
export { type DevServer, startDevServer } from './server/dev-server.ts';
export { runTests } from './test-runner/run-tests.ts';
export { type BuildReport, startWatching, type WatchSession } from './watch/watch-session.ts';
