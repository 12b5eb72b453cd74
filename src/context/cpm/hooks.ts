/** Hooks of cpm: from an event of claude to what the model is told. */
import type { ContextSystem } from '../hook-call.ts';

export const cpm: ContextSystem = { name: 'cpm', answer: () => ({ text: '' }) };
