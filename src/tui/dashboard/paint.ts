/** Rows with the escape codes of their tones, for the colours that the terminal has. */
import type { Tone } from '../../view/format.ts';
import type { Row } from './cells.ts';

/**
 * `plain`: no colours at all. `sixteen`: those that every theme defines itself, and no background, so that it can be
 * read on light and on dark. `dark` and `light`: of 256 colours, those that suit such a background.
 */
export type Paint = 'plain' | 'sixteen' | 'dark' | 'light';
export type Background = Extract<Paint, 'dark' | 'light'>;

type Codes = readonly [on: string, off: string];

interface Palette {
  readonly tones: Readonly<Partial<Record<Tone, Codes>>>;
  readonly selected: Codes;
  /** What is selected keeps its tones. */
  readonly keepsTones: boolean;
}

const reverse: Codes = ['7', '27'];
const bold: Codes = ['1', '22'];
const faint: Codes = ['2', '22'];
const ink = (colour: number): Codes => [`38;5;${colour}`, '39'];
const ground = (colour: number): Codes => [`48;5;${colour}`, '49'];

const palettes: Readonly<Record<Paint, Palette>> = {
  // Without colours, what is wrong is bold.
  plain: { tones: { bad: bold, warn: bold, strong: bold, dim: faint }, selected: reverse, keepsTones: false },
  sixteen: {
    tones: {
      good: ['32', '39'],
      bad: ['31', '39'],
      warn: ['33', '39'],
      accent: ['36', '39'],
      dim: faint,
      strong: bold,
    },
    selected: reverse,
    keepsTones: false,
  },
  dark: {
    tones: { good: ink(114), bad: ink(210), warn: ink(221), accent: ink(117), dim: ink(246), strong: bold },
    selected: ground(238),
    keepsTones: true,
  },
  light: {
    tones: { good: ink(22), bad: ink(124), warn: ink(94), accent: ink(25), dim: ink(240), strong: bold },
    selected: ground(252),
    keepsTones: true,
  },
};

function escaped(code: string): string {
  return `\u001b[${code}m`;
}

export function paintRow({ cells }: Row, paint: Paint): string {
  const { tones, selected, keepsTones } = palettes[paint];
  let line = '';
  let isOn = false;
  for (const { text, tone, isSelected = false } of cells) {
    if (isSelected !== isOn) line += escaped(selected[isSelected ? 0 : 1]);
    isOn = isSelected;
    const codes = tone === undefined || (isSelected && !keepsTones) ? undefined : tones[tone];
    line += codes === undefined ? text : `${escaped(codes[0])}${text}${escaped(codes[1])}`;
  }
  return isOn ? line + escaped(selected[1]) : line;
}

/** By what a terminal answers when it is asked for its background (OSC 11): `rgb:ffff/ffff/ffff`; null = no colour. */
export function backgroundOf(answer: string): Background | null {
  const parts = /^rgba?:([\da-f]{1,4})\/([\da-f]{1,4})\/([\da-f]{1,4})/i.exec(answer)?.slice(1);
  if (parts === undefined) return null;
  const [red = 0, green = 0, blue = 0] = parts.map((part) => Number.parseInt(part, 16) / (16 ** part.length - 1));
  // As bright as it looks.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5 ? 'dark' : 'light';
}

/** By what some terminals say in COLORFGBG: the numbers of text and background among the sixteen colours. */
export function backgroundOfNumbers(colorFgBg: string | undefined): Background | null {
  const number = /;(\d{1,2})$/.exec(colorFgBg ?? '')?.[1];
  if (number === undefined) return null;
  return number === '7' || (Number(number) > 8 && Number(number) < 16) ? 'light' : 'dark';
}
