/** What the terminal can show: which colours, on which background, Unicode or ASCII. */
import { asciiGlyphs, type Glyphs, unicodeGlyphs } from '../../tui/dashboard/glyphs.ts';
import { backgroundOfNumbers, type Paint } from '../../tui/dashboard/paint.ts';
import { plainStyle } from '../../view/format.ts';
import type { Context } from '../context.ts';

export interface Look {
  readonly glyphs: Glyphs;
  /** As far as it is known before the terminal was asked. */
  readonly paint: Paint;
  /** Whether its background is worth a question. */
  readonly asksBackground: boolean;
}

export function lookOf({ env, stdout }: Pick<Context, 'env' | 'stdout'>): Look {
  const glyphs = hasUnicode(env) ? unicodeGlyphs : asciiGlyphs;
  if (stdout.style === plainStyle) return { glyphs, paint: 'plain', asksBackground: false };
  if (!has256(env)) return { glyphs, paint: 'sixteen', asksBackground: false };
  const background = backgroundOfNumbers(env.COLORFGBG);
  return { glyphs, paint: background ?? 'sixteen', asksBackground: background === null };
}

function has256({ TERM = '', COLORTERM = '' }: Context['env']): boolean {
  return COLORTERM !== '' || /256|direct|kitty|ghostty|alacritty|wezterm|foot/.test(TERM);
}

/** As the C library chooses: the first that is set counts. Nothing set says nothing, and today means UTF-8. */
function hasUnicode({ LC_ALL, LC_CTYPE, LANG, TERM }: Context['env']): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => (value ?? '') !== '');
  return TERM !== 'linux' && (locale === undefined || /utf-?8/i.test(locale));
}
