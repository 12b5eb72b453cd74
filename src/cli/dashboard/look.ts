/** What the terminal can show: colours or not, Unicode or ASCII. */
import { asciiGlyphs, type Glyphs, unicodeGlyphs } from '../../report/dashboard/glyphs.ts';
import { plainStyle } from '../../report/format.ts';
import type { Context } from '../context.ts';

export interface Look {
  readonly glyphs: Glyphs;
  readonly hasColours: boolean;
}

export function lookOf({ env, stdout }: Pick<Context, 'env' | 'stdout'>): Look {
  return { glyphs: hasUnicode(env) ? unicodeGlyphs : asciiGlyphs, hasColours: stdout.style !== plainStyle };
}

/** As the C library chooses: the first that is set counts. Nothing set says nothing, and today means UTF-8. */
function hasUnicode({ LC_ALL, LC_CTYPE, LANG, TERM }: Context['env']): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => (value ?? '') !== '');
  return TERM !== 'linux' && (locale === undefined || /utf-?8/i.test(locale));
}
