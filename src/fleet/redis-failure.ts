/** What Redis or the way to it has against a question, as a sentence with the next step. */
import { errorText, fail, type Result } from '../core/failure.ts';

const cures: readonly (readonly [RegExp, 'usage' | 'timeout', string, string])[] = [
  [/WRONGPASS|NOAUTH/, 'usage', 'refuses the user or the password', 'Give the right ones in its address.'],
  [
    /NOPERM/,
    'usage',
    'does not allow its user what a fleet needs',
    'Give that user the rights that docs/fleet.md names.',
  ],
  [
    /OOM command/,
    'timeout',
    'has no memory left',
    'Give it more (maxmemory), or wait until blobs are gone in an hour.',
  ],
  [/MISCONF|READONLY/, 'timeout', 'takes no writes', 'See its log: its disk may be full, or it is a replica.'],
  [/LOADING/, 'timeout', 'is still loading its data', 'Wait until it has begun.'],
  [
    /certificate|CERT_|SSL|TLS|wrong version number/i,
    'usage',
    'shows a certificate that is not trusted, or speaks no TLS',
    'Give the certificate of its authority with --ca, or correct the address.',
  ],
  [/ENOTFOUND|EAI_AGAIN/, 'timeout', 'is a name that is not known here', 'Correct the address of Redis.'],
  [/ECONNREFUSED/, 'timeout', 'refuses the connection', 'Start it, or correct the address.'],
];

/** `earlier`: what the connection itself said last, when the question was only dropped with it. */
export function redisFailure(host: string, error: unknown, earlier: unknown): Result<never> {
  const said = [error, earlier].filter((one) => one !== null && one !== undefined).map(wordsOf);
  for (const text of said) {
    const known = cures.find(([pattern]) => pattern.test(text));
    if (known !== undefined) return fail(known[1], `Redis at ${host} ${known[2]}.`, known[3]);
  }
  return fail('timeout', `Redis at ${host} does not answer.`, 'Check the network and the server, then try again.');
}

function wordsOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return `${typeof code === 'string' ? code : ''} ${errorText(error)}`;
}
