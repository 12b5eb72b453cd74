/**
 * The standard streams of this process. What stands behind `process.stdout` takes as long to load as a short command
 * takes to run, so it is used for terminals alone.
 */
import { isRegularFile, mayBeTerminal } from '../system/terminal.ts';
import type { OutputStream } from './output.ts';

export function standardInputIsTerminal(): boolean {
  return mayBeTerminal(0) && process.stdin.isTTY === true;
}

export function standardOutput(): OutputStream {
  return mayBeTerminal(1) ? process.stdout : plainStream(Bun.stdout.writer(), isRegularFile(1));
}

export function standardError(): OutputStream {
  return mayBeTerminal(2) ? process.stderr : plainStream(Bun.stderr.writer(), isRegularFile(2));
}

/** What goes wrong is told to whoever wrote. */
function plainStream(sink: Bun.FileSink, isFile: boolean): OutputStream {
  return {
    isFile,
    on: () => {},
    write(data, done) {
      try {
        // Either of the two is a promise when the system does not take all at once, and fails when it never will.
        const [taken, flushed] = [sink.write(data), sink.flush()];
        if (typeof taken === 'number' && typeof flushed === 'number') queueMicrotask(done);
        else Promise.all([taken, flushed]).then(() => done(), done);
      } catch (error) {
        done(error as Error);
      }
    },
  };
}
