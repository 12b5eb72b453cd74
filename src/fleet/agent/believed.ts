/** What a machine takes for the word of a runner. */
import type { Verifier } from '../seal.ts';
import { type ToHost, toHost } from '../wire.ts';

/** `bytes` as they were unsealed, null = they could not be. A text is the end of a sentence that says why not. */
export function believed(bytes: Uint8Array | null, stream: string, verifier: Verifier): ToHost | string {
  if (bytes === null) return 'it is not sealed with the key of the fleet';
  const text = verifier.verify(stream, bytes);
  if (text === null) return 'no runner that this machine accepts has signed it';
  const message = toHost.safeParse(jsonOf(text));
  return message.success ? message.data : 'this version does not understand it';
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
